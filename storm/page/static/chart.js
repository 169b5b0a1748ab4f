"use strict";

// A line is its name, its color (a variable and a class of the style sheet), its values
// and what is filled: true down to 0, or the values of the line that it lies on. The
// second line of a figure is dashed.
const sum = (a, b) => a.map((v, i) => v + b[i]);
const panels = [
  { title: "Attempts per second", unit: "/s", lines: (r) => [["with retries", "retry", sum(r.fresh, r.retry), r.fresh], ["first attempts", "fresh", r.fresh, true]], about: "What the service is sent. The part between the lines is retries." },
  { title: "Goodput", unit: "/s", lines: (r) => [["good calls", "good", r.good, true], ["all calls", "grey", r.offered]], about: "Calls that succeed, by the second in which they end." },
  { title: "Multiplier", unit: "x", lines: (r) => [["multiplier", "retry", r.multiplier]], least: 1, about: "Attempts for each call. At 1x nothing is retried." },
  { title: "Latency", unit: " ms", lines: (r) => [["p99", "retry", r.p99_ms], ["p50", "fresh", r.p50_ms]], about: "Of good calls, retries included. There is no line while no call succeeds." },
  { title: "Queue", unit: " s", lines: (r) => [["queue", "fresh", r.queue_s, true]], about: "How long the service would work on what waits for it." },
  { title: "Budget and breaker", unit: "", lines: (r) => [["budget used", "retry", r.budget], ["breakers open", "alarm", r.breaker, true]], least: 1, about: "At 1, the retry budgets are spent, or all breakers are open." },
];

function figure(where, key, title, lines, about) {
  const id = where + "-" + key;
  let canvas = byId(id);
  if (!canvas) {
    const f = document.createElement("figure");
    canvas = document.createElement("canvas");
    canvas.id = id;
    canvas.setAttribute("role", "img");
    f.append(document.createElement("figcaption"), canvas);
    if (about) f.append(Object.assign(document.createElement("small"), { textContent: about }));
    byId(where).append(f);
  }
  canvas.previousSibling.replaceChildren(title, ...lines.map(([name, color]) => Object.assign(document.createElement("span"), { className: color, textContent: name })));
  return canvas;
}

function draw() {
  if (!last) return;
  const [mine, ...others] = last.results;
  const plots = []; // drawn when all figures are there, as each makes the others smaller
  panels.forEach((p, i) => {
    const lines = p.lines(mine);
    const canvas = figure("charts", i, p.title, lines, p.about);
    canvas.parentNode.hidden = lines.every(([, , values]) => values.every((v) => v === null)); // a sample may have no latencies
    plots.push([canvas, lines, { unit: p.unit, least: p.least, faults: mine.faults, duration: mine.duration_s, title: p.title }]);
  });
  const top = Math.max(...others.map((r) => Math.max(...sum(r.fresh, r.retry))));
  if (byId("policies").children.length > others.length) byId("policies").replaceChildren(); // a case had one more
  others.forEach((r) => {
    const lines = [["attempts", "retry", sum(r.fresh, r.retry), true], ["good calls", "good", r.good, true]];
    plots.push([figure("policies", r.name, r.title, lines), lines, { unit: "/s", top, faults: r.faults, duration: r.duration_s, title: r.title + ": " + r.headline }]);
  });
  byId("herd").hidden = !last.herds.some((h) => Math.max(...h.counts) > 0);
  last.herds.forEach((h, i) => {
    const peak = Math.max(...h.counts);
    const lines = [["fullest millisecond: " + peak, "retry", h.counts, true]];
    plots.push([figure("herds", i, h.name, lines), lines, { unit: "", duration: h.counts.length / 1000, bars: true, title: h.name + ": at most " + peak + " retries in a millisecond" }]);
  });
  for (const p of plots) plot(...p);
}

function roundUp(v) {
  if (!(v > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(v));
  return p * [1, 1.5, 2, 3, 4, 5, 7.5, 10].find((k) => v <= k * p * 1.0001);
}

function plot(canvas, lines, o) {
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.setAttribute("aria-label", o.title);
  const g = canvas.getContext("2d");
  const style = getComputedStyle(document.body);
  const paint = (name) => style.getPropertyValue("--" + name);
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, box.width, box.height);
  const [left, right, top, bottom] = [52, 8, 6, 18];
  const [pw, ph] = [box.width - left - right, box.height - top - bottom];
  let peak = o.top || o.least || 0;
  if (!o.top) for (const [, , values] of lines) for (const v of values) if (v > peak) peak = v;
  const high = roundUp(peak);
  const y = (v) => top + ph * (1 - Math.min(v / high, 1));
  g.fillStyle = paint("band");
  for (const [begins, ends] of o.faults || []) {
    const from = left + (pw * begins) / o.duration;
    g.fillRect(from, top, Math.max(1, (pw * (Math.min(ends, o.duration) - begins)) / o.duration), ph);
  }
  g.font = "11px system-ui, sans-serif";
  g.fillStyle = g.strokeStyle = style.color;
  g.lineWidth = 1;
  g.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    g.globalAlpha = 1;
    g.fillText(measure(high * part, o.unit), left - 4, Math.max(y(high * part) + 4, 10));
    g.globalAlpha = 0.15;
    g.beginPath();
    g.moveTo(left, y(high * part));
    g.lineTo(left + pw, y(high * part));
    g.stroke();
  }
  g.globalAlpha = 1;
  for (const part of [0, 0.5, 1]) {
    g.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
    g.fillText(amount(o.duration * part) + " s", left + pw * part, box.height - 4);
  }
  lines.forEach(([, color, values, area], i) => curve(g, values, paint(color), area, { left, pw, y, bars: o.bars, dash: i ? [5, 3] : [] }));
}

function curve(g, values, color, area, o) {
  const n = values.length;
  g.strokeStyle = g.fillStyle = color;
  g.lineWidth = 2;
  g.setLineDash(o.dash);
  if (o.bars) {
    const width = Math.max(1, o.pw / n);
    values.forEach((v, i) => { if (v > 0) g.fillRect(o.left + (o.pw * i) / n, o.y(v), width, o.y(0) - o.y(v)); });
    return;
  }
  g.beginPath();
  let open = false;
  let x = 0;
  const spans = [];
  values.forEach((v, i) => {
    if (v === null) {
      open = false;
      return;
    }
    x = o.left + (o.pw * (i + 0.5)) / n;
    if (open) g.lineTo(x, o.y(v));
    else {
      g.moveTo(x, o.y(v));
      spans.push([]);
    }
    spans.at(-1).push([x, o.y(v), o.y(area === true ? 0 : area?.[i])]);
    open = true;
  });
  g.stroke();
  g.setLineDash([]);
  if (!area) return;
  g.globalAlpha = 0.22;
  for (const s of spans) {
    g.beginPath();
    for (const [px, py] of s) g.lineTo(px, py);
    for (const [px, , base] of s.reverse()) g.lineTo(px, base);
    g.fill();
  }
  g.globalAlpha = 1;
}

