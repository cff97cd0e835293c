// charts: curves over steps, drawn by Chart.js; colours come from the style sheet.

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

export class Curves {
  // series: [{name, title, colour, dots}]
  constructor(canvas, series, format, steps) {
    this.canvas = canvas;
    this.series = series;
    this.format = format;
    this.steps = steps;
    this.type = 'linear';
    this.points = new Map(series.map((s) => [s.name, []]));
    this.chart = new Chart(canvas, {
      type: 'line',
      data: {datasets: series.map((s) => ({label: s.title, data: []}))},
      options: {
        animation: false,
        parsing: false,
        normalized: true,
        responsive: true,
        maintainAspectRatio: false,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        plugins: {
          legend: {display: series.length > 1, align: 'end'},
          decimation: {enabled: true, algorithm: 'min-max'},
          tooltip: {callbacks: {
            title: (items) => items.length > 0 ? `step ${steps(items[0].parsed.x)}` : '',
            label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
          }},
        },
      },
    });
    dark.addEventListener('change', () => this.paint());
    this.paint();
  }

  paint() {
    const options = this.chart.options;
    options.scales = {x: scale(this.steps, 'linear'), y: scale(this.format, this.type)};
    options.scales.x.grid.display = false;
    options.plugins.legend.labels = {color: colour('text'), boxWidth: 14, boxHeight: 2};
    this.series.forEach((s, at) => {
      Object.assign(this.chart.data.datasets[at], {
        borderColor: colour(s.colour), backgroundColor: colour(s.colour), borderWidth: 1.75,
        pointRadius: s.dots ? 2.5 : 0, pointHoverRadius: 4, tension: 0,
      });
    });
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
