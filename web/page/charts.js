// charts: curves over steps, drawn by Chart.js; colours come from the style sheet.
import {el} from '/dom.js';

const dark = matchMedia('(prefers-color-scheme: dark)');

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function scale(format, type) {
  return {
    type,
    grid: {color: colour('grid'), drawTicks: false},
    border: {display: false},
    ticks: {color: colour('quiet'), padding: 8, maxTicksLimit: 7, maxRotation: 0,
            callback: (value) => format(value)},
  };
}

// The distribution's Chart.js may be too old; the rest of the page then stands without curves.
function canDraw() {
  return typeof Chart !== 'undefined' && Number.parseInt(Chart.version, 10) >= 3;
}

export class Curves {
  // series: [{name, title, colour, dots, fromZero}]
  constructor(canvas, series, format, steps) {
    this.canvas = canvas;
    this.series = series;
    this.format = format;
    this.steps = steps;
    this.type = 'linear';
    this.points = new Map(series.map((s) => [s.name, []]));
    if (!canDraw()) {
      canvas.replaceWith(el('p', {class: 'quiet', text: 'Curves need Chart.js 3 or newer.'}));
      return;
    }
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    this.chart = new Chart(canvas, {
      type: 'line',
      data: {datasets: series.map((s) => ({label: s.title, data: [], ...this.look(s)}))},
      options: {
        ...this.scales(),
        animation: false,
        parsing: false,
        spanGaps: false,
        normalized: true,
        responsive: true,
        maintainAspectRatio: false,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        plugins: {
          legend: {display: series.length > 1, align: 'end', labels: {boxWidth: 14, boxHeight: 2}},
          decimation: {enabled: true, algorithm: 'min-max'},
          tooltip: {callbacks: {
            title: (items) => items.length > 0 ? `step ${steps(items[0].parsed.x)}` : '',
            label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
          }},
        },
      },
    });
    dark.addEventListener('change', () => this.paint());
  }

  look(series) {
    return {borderColor: colour(series.colour), backgroundColor: colour(series.colour),
            borderWidth: 1.75, pointRadius: series.dots ? 2.5 : 0, pointHoverRadius: 4,
            pointBorderWidth: 0, tension: 0};
  }

  scales() {
    const x = scale(this.steps, 'linear');
    x.grid.display = false;
    x.bounds = 'data';
    x.suggestedMin = 0;
    const y = scale(this.format, this.type);
    y.beginAtZero = this.series.some((s) => s.fromZero);
    return {scales: {x, y}, color: colour('text')};
  }

  // Again with the colours and scales of this moment.
  paint() {
    if (!this.chart) return;
    Object.assign(this.chart.options, this.scales());
    this.series.forEach((s, at) => Object.assign(this.chart.data.datasets[at], this.look(s)));
    this.chart.update('none');
  }

  setLogarithmic(on) {
    this.type = on ? 'logarithmic' : 'linear';
    this.paint();
  }

  clear() {
    for (const points of this.points.values()) points.length = 0;
  }

  // columns: the API's series, by name; values that are null (not a number) leave a gap
  add(columns) {
    for (const [name, points] of this.points) {
      const column = columns[name];
      if (!column) continue;
      column.step.forEach((step, at) => points.push({x: step, y: column.value[at] ?? NaN}));
    }
  }

  draw() {
    if (!this.chart) return;
    this.series.forEach((s, at) => {
      // a new array: Chart.js then thins it again
      this.chart.data.datasets[at].data = this.points.get(s.name).slice();
    });
    this.describe();
    this.chart.update('none');
  }

  describe() {
    const newest = this.series.map((s) => {
      const points = this.points.get(s.name);
      return points.length === 0 ? `no ${s.title.toLowerCase()} yet`
        : `${s.title.toLowerCase()} ${this.format(points[points.length - 1].y)}`
          + ` at step ${this.steps(points[points.length - 1].x)}`;
    });
    this.canvas.setAttribute('aria-label', `By step: ${newest.join(', ')}`);
  }
}
