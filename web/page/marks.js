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
    marks.push({step: c.step, time: c.time_ms, kind: 'checkpoint', words: 'checkpoint'});
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

// Returns the places that are not too close to the one before to be told apart.
function apart(places) {
  let last = -Infinity;
  return [...places].sort((a, b) => a - b).filter((at) => {
    const kept = at - last >= 9;
    if (kept) last = at;
    return kept;
  });
}

const hues = {start: 'running', failed: 'failed', stopped: 'stopped'};

// Writes words next to a mark, on the side that has room.
function write(ctx, words, x, y, area) {
  const left = x > area.right - 80;
  ctx.textAlign = left ? 'right' : 'left';
  ctx.fillText(words, x + (left ? -6 : 6), y);
}

// first: the first mark of its kind, which has its name next to it.
function drawMark(ctx, mark, x, area, first) {
  if (mark.kind === 'checkpoint') {
    triangle(ctx, x, area.bottom, true, colour('finished'));
    if (first) write(ctx, mark.words, x, area.bottom - 2, area);
    return;
  }
  const hue = colour(hues[mark.kind]);
  line(ctx, x, area, hue, mark.kind === 'start' ? [4, 3] : [1, 2]);
  ctx.fillStyle = hue;
  write(ctx, mark.words, x, area.top + (mark.kind === 'start' ? 10 : 22), area);
}

// Chart.js plugin for Curves: marks() gives each mark with its x, `bad` the x of values that are not finite.
export const marksPlugin = (curves) => ({
  id: 'marks',
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    ctx.save();
    ctx.lineWidth = 1;
    ctx.font = `11px ${Chart.defaults.font.family}`;
    const named = new Set();
    for (const mark of curves.marks()) {
      const at = x.getPixelForValue(mark.x);
      if (at < area.left || at > area.right) continue;
      drawMark(ctx, mark, at, area, !named.has(mark.kind));
      named.add(mark.kind);
    }
    const bad = apart((curves.bad ?? []).map((value) => x.getPixelForValue(value)));
    for (const at of bad) triangle(ctx, at, area.top, false, colour('failed'));
    if (bad.length > 0) write(ctx, 'not a number', bad[0], area.top + 32, area);
    ctx.restore();
  },
});
