// marks: draws marks on the axis of a chart: attempts and how they ended, checkpoints, values that are not finite.
import {colour} from '/dom.js';

// Returns [{step, time, kind: 'start', 'failed', 'stopped' or 'checkpoint', words}] of a run. step
// is null where it is unknown: at the end of an attempt that was followed by another.
export function marksOf(run, attempts, checkpoints) {
  const marks = [];
  for (const a of attempts) {
    if (a.attempt > 1 || a.start_step > 0) // the first attempt of a fork starts at a later step
      marks.push({step: a.start_step, time: a.started_ms ?? a.created_ms, kind: 'start',
                  words: a.attempt > 1 ? `attempt ${a.attempt}` : 'fork'});
    if (['failed', 'stopped'].includes(a.state) && a.ended_ms !== null)
      marks.push({step: a.attempt === run.attempt ? run.step : null, time: a.ended_ms,
                  kind: a.state, words: a.state});
  }
  for (const c of checkpoints)
    marks.push({step: c.step, time: c.time_ms, kind: 'checkpoint', words: ''});
  return marks;
}

function line(ctx, x, area, hue, dash) {
  ctx.strokeStyle = hue;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, area.top);
  ctx.lineTo(x, area.bottom);
  ctx.stroke();
}

function triangle(ctx, x, y, up, hue) {
  ctx.fillStyle = hue;
  ctx.beginPath();
  ctx.moveTo(x - 4, y);
  ctx.lineTo(x + 4, y);
  ctx.lineTo(x, y + (up ? -6 : 6));
  ctx.fill();
}

const hues = {start: 'running', failed: 'failed', stopped: 'stopped'};

function drawMark(ctx, mark, x, area) {
  if (mark.kind === 'checkpoint') {
    triangle(ctx, x, area.bottom, true, colour('finished'));
    return;
  }
  const hue = colour(hues[mark.kind]);
  line(ctx, x, area, hue, mark.kind === 'start' ? [4, 3] : [1, 2]);
  ctx.fillStyle = hue;
  const left = x > area.right - 70;
  ctx.textAlign = left ? 'right' : 'left';
  ctx.fillText(mark.words, x + (left ? -4 : 4), area.top + (mark.kind === 'start' ? 10 : 22));
}

// Chart.js plugin for Curves: marks() gives each mark with its x, `bad` the x of values that are not finite.
export const marksPlugin = (curves) => ({
  id: 'marks',
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    ctx.save();
    ctx.lineWidth = 1;
    ctx.font = `11px ${Chart.defaults.font.family}`;
    for (const mark of curves.marks()) {
      const at = x.getPixelForValue(mark.x);
      if (at >= area.left && at <= area.right) drawMark(ctx, mark, at, area);
    }
    for (const value of curves.bad ?? [])
      triangle(ctx, x.getPixelForValue(value), area.top, false, colour('failed'));
    ctx.restore();
  },
});
