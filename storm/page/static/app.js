"use strict";

// Every control: where it stands, how its position becomes a value, how the
// value reads. The URL's fragment holds the positions that differ from the first.
const log = (lo, hi) => ({ min: Math.log10(lo), max: Math.log10(hi), step: 0.01, value: (p) => nice(10 ** p) });
const lin = (lo, hi, step) => ({ min: lo, max: hi, step, value: (p) => p });

const controls = [
  { id: "load", group: "load", label: "Load", ...log(100, 1e8), start: 4, text: (v) => amount(v) + " req/s" },
  { id: "use", group: "load", label: "Load as a part of the capacity", ...lin(20, 130, 1), start: 70, text: (v) => v + " %" },
  { id: "clients", group: "load", label: "Client instances", ...log(1, 1e5), start: 2, text: amount, value: (p) => Math.max(1, Math.round(10 ** p)) },
  { id: "loop", group: "load", label: "Clients", options: [["open", "send at their own pace"], ["closed", "wait for each response"]] },
  { id: "fault", group: "fault", label: "Kind", options: [["brownout", "brownout"], ["outage", "outage (503)"], ["errors", "errors, each attempt anew"], ["sticky", "errors, always the same calls"], ["load", "errors, by load"], ["pause", "pause (GC)"], ["slow_start", "slow start"], ["spike", "spike of load"], ["partition", "partition"]] },
  { id: "length", group: "fault", label: "Length", ...log(0.1, 30), start: 1, text: (v) => v + " s" },
  { id: "depth", group: "fault", label: "Severity", ...lin(5, 100, 5), start: 50, text: (v) => severity(v) },
  { id: "retries", group: "retry", label: "Retries", ...lin(0, 10, 1), start: 3, text: (v) => v + (v > 5 ? " (R-2 allows 5)" : "") },
  { id: "base", group: "retry", label: "Backoff base", ...log(0.01, 10), start: -1, text: duration },
  { id: "cap", group: "retry", label: "Backoff cap", ...log(0.1, 60), start: Math.log10(2), text: duration },
  { id: "timeout", group: "retry", label: "Timeout of an attempt", ...log(0.05, 30), start: 0, text: duration },
  { id: "jitter", group: "retry", label: "Wait", options: [["full", "full jitter"], ["exponential", "no jitter"], ["equal", "equal jitter"], ["fixed", "fixed"], ["none", "no backoff"]] },
  { id: "budget", group: "retry", label: "Retry budget", ...lin(0, 50, 1), start: 20, text: (v) => (v === 0 ? "none" : v + " %" + (v > 20 ? " (R-7 allows 20)" : "")) },
  { id: "window", group: "retry", label: "Budget window", ...lin(10, 120, 5), start: 30, text: (v) => v + " s" },
  { id: "breaker", group: "retry", label: "Circuit breaker", check: true },
  { id: "queue", group: "service", label: "Queue bound", ...lin(0, 10, 0.1), start: 0, text: (v) => (v === 0 ? "none" : v.toFixed(1) + " s") },
  { id: "after", group: "service", label: "Retry-After on 503", ...lin(0, 10, 0.5), start: 0, text: (v) => (v === 0 ? "none" : v + " s") },
  { id: "drop", group: "service", label: "Drop expired work", check: true },
];
const five = ["none", "backoff", "jitter", "budget", "breaker"];
const byId = (id) => document.getElementById(id);

function nice(v) {
  return Number(v.toPrecision(v < 10 ? 2 : 3));
}

function amount(v) {
  if (v == null || !isFinite(v)) return "-";
  for (const [n, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(v) >= n) return Number((v / n).toPrecision(3)) + unit;
  }
  return String(Number(v.toPrecision(3)));
}

// measure writes a value with its unit; a second is not "1 k ms".
function measure(v, unit) {
  return unit === " ms" && v >= 1000 ? amount(v / 1000) + " s" : amount(v) + unit;
}

function duration(v) {
  return v < 1 ? Math.round(v * 1000) + " ms" : v + " s";
}

function severity(v) {
  switch (state ? state.fault : "brownout") {
    case "brownout": return 100 - Math.min(v, 99) + " % of capacity left";
    case "slow_start": return "from " + (100 - Math.min(v, 99)) + " %";
    case "spike": return (1 + v / 25).toFixed(1) + "x load";
    case "partition": return v + " % cut off";
    case "pause": return "all of it";
    default: return v + " % fail";
  }
}

let state = null;

function build() {
  for (const c of controls) {
    const row = document.createElement("div");
    row.className = "control";
    const label = document.createElement("label");
    label.htmlFor = c.id;
    label.textContent = c.label;
    row.append(label);
    let input;
    if (c.options) {
      input = document.createElement("select");
      for (const [value, text] of c.options) input.add(new Option(text, value));
      c.start = c.options[0][0];
    } else {
      input = document.createElement("input");
      if (c.check) {
        input.type = "checkbox";
        c.start = false;
      } else {
        input.type = "range";
        [input.min, input.max, input.step] = [c.min, c.max, c.step];
        const out = document.createElement("output");
        out.htmlFor = c.id;
        out.id = c.id + "-out";
        row.append(out);
      }
    }
    input.id = c.id;
    row.append(input);
    byId("group-" + c.group).append(row);
    input.addEventListener("input", changed);
  }
  byId("reset").addEventListener("click", () => {
    for (const c of controls) put(c, c.start);
    changed();
  });
}

function put(c, value) {
  const e = byId(c.id);
  if (c.check) e.checked = value === true || value === "1";
  else e.value = value;
}

function get(c) {
  const e = byId(c.id);
  return c.check ? e.checked : c.options ? e.value : Number(e.value);
}

function fromURL() {
  const q = new URLSearchParams(location.hash.slice(1));
  for (const c of controls) put(c, q.has(c.id) ? q.get(c.id) : c.start);
}

function toURL() {
  const q = new URLSearchParams();
  for (const c of controls) {
    const v = get(c);
    if (c.check ? v !== c.start : c.options ? v !== c.start : Math.abs(v - c.start) > c.step / 2) {
      q.set(c.id, c.check ? (v ? "1" : "0") : String(v));
    }
  }
  const hash = q.toString();
  history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
}

function changed() {
  state = {};
  for (const c of controls) state[c.id] = c.value ? c.value(get(c)) : get(c);
  for (const c of controls) {
    const out = byId(c.id + "-out");
    if (!out) continue;
    out.textContent = c.text(state[c.id]);
    byId(c.id).setAttribute("aria-valuetext", out.textContent);
  }
  toURL();
  ask();
}

// secs writes seconds as Go reads them.
const secs = (v) => Math.round(v * 1e6) + "us";

function scenario() {
  const s = state;
  const at = 10;
  const fault = { kind: s.fault, at: secs(at), for: secs(s.length) };
  const part = s.depth / 100;
  switch (s.fault) {
    case "sticky": case "load":
      fault.mode = s.fault;
      fault.kind = "errors";
      fault.rate = part;
      break;
    case "errors": case "outage": fault.rate = part; break;
    case "partition": fault.share = part; break;
    case "brownout": case "slow_start": fault.factor = Math.max(0.01, 1 - part); break;
    case "spike": fault.factor = 1 + s.depth / 25; break;
  }
  const cap = Math.max(s.cap, s.base);
  const client = {
    retries: s.retries, timeout: secs(s.timeout), base: secs(s.base), cap: secs(cap), breaker: s.breaker,
    budget: { ratio: s.budget / 100, window: secs(Math.max(s.window, cap)) },
    baseline: { unchecked: true, no_budget: s.budget === 0, wait: s.jitter === "full" ? "" : s.jitter },
  };
  if (s.budget === 0) client.budget = {};
  const fleet = { name: "clients", instances: s.clients, client };
  if (s.loop === "closed") {
    fleet.users = Math.round(s.load);
    fleet.think = "1s";
  } else {
    fleet.rate = s.load;
  }
  const capacity = s.load / (s.use / 100);
  // As many servers as make a service take 5 ms.
  const service = { name: "service", capacity, concurrency: Math.max(1, Math.min(1e6, Math.round(capacity * 0.005))) };
  if (s.queue > 0) service.queue = secs(s.queue);
  if (s.after > 0) service.retry_after = secs(s.after);
  if (s.drop) service.drop_expired = true;
  return { name: "page", duration: "60s", fleets: [fleet], services: [service], faults: [fault] };
}

// One request is under way at a time; what came in between is left out, but
// never the last.
let asking = false;
let again = false;

async function ask() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const start = performance.now();
  try {
    const r = await fetch("api/run", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ scenario: scenario(), variants: ["", ...five], herd: 1000 }),
    });
    const body = await r.json();
    if (!r.ok) throw new Error(body.detail || body.title);
    show(body, performance.now() - start);
  } catch (e) {
    const v = byId("verdict");
    v.textContent = e.message;
    v.className = "error";
  }
  asking = false;
  if (again) {
    again = false;
    ask();
  }
}

let last = null;

function show(response, took) {
  last = response;
  const r = response.results[0];
  const s = r.summary;
  const verdict = byId("verdict");
  if (verdict.textContent !== r.headline) verdict.textContent = r.headline;
  verdict.className = s.verdict;
  numbers([
    ["multiplier", s.multiplier.toFixed(3) + "x"], ["peak", s.peak_multiplier.toFixed(2) + "x"],
    ["time to recover", recovery(s)], ["good calls", percent(s.good / s.calls)],
    ["wasted work", percent(s.wasted)], ["longest queue", amount(s.max_queue_s) + " s"],
    ["p50", measure(s.p50_ms, " ms")], ["p99", measure(s.p99_ms, " ms")],
    ["attempts", amount(s.attempts)], ["refused by budget", amount(s.budget_refused)],
  ]);
  byId("notes").textContent = (r.notes || []).join(" ");
  byId("engine").textContent = "Simulated " + (r.scale ? "1 of every " + nice(r.scale).toLocaleString("en") + " requests" : "every request") +
    ", in " + response.took_ms.toFixed(1) + " ms for " + response.results.length + " policies; " + Math.round(took) + " ms round trip.";
  table(response.results);
  draw();
}

function recovery(s) {
  return s.recovery_s < 0 ? "never" : s.recovery_s === 0 ? "at once" : s.recovery_s.toFixed(1) + " s";
}

function percent(v) {
  return (100 * v).toFixed(1) + " %";
}

function numbers(list) {
  const dl = byId("numbers");
  if (!dl.children.length) {
    for (const [name] of list) {
      const div = document.createElement("div");
      const dt = document.createElement("dt");
      dt.textContent = name;
      div.append(dt, document.createElement("dd"));
      dl.append(div);
    }
  }
  list.forEach(([, value], i) => { dl.children[i].lastChild.textContent = value; });
}

function table(results) {
  const body = byId("table");
  body.replaceChildren(...results.map((r) => {
    const s = r.summary;
    const tr = document.createElement("tr");
    [r.title, s.verdict, recovery(s), s.multiplier.toFixed(2) + "x", s.peak_multiplier.toFixed(2) + "x", percent(s.good / s.calls), percent(s.wasted)].forEach((text, i) => {
      const td = document.createElement("td");
      td.textContent = text;
      if (i === 1) td.className = s.verdict;
      tr.append(td);
    });
    return tr;
  }));
}

const colors = { fresh: "#2c7a7b", retry: "#dd6b20", good: "#2f855a", grey: "#718096", alarm: "#e53e3e" };
const sum = (a, b) => a.map((v, i) => v + b[i]);
const panels = [
  { title: "Attempts per second", unit: "/s", lines: (r) => [["with retries", colors.retry, sum(r.fresh, r.retry), true], ["fresh", colors.fresh, r.fresh, true]] },
  { title: "Goodput", unit: "/s", lines: (r) => [["offered", colors.grey, r.offered], ["good", colors.good, r.good, true]] },
  { title: "Multiplier", unit: "x", lines: (r) => [["multiplier", colors.retry, r.multiplier]], least: 1 },
  { title: "Latency", unit: " ms", lines: (r) => [["p99", colors.retry, r.p99_ms], ["p50", colors.fresh, r.p50_ms]] },
  { title: "Queue", unit: " s", lines: (r) => [["queue", colors.fresh, r.queue_s, true]] },
  { title: "Budget and breaker", unit: "", lines: (r) => [["budget used", colors.retry, r.budget], ["breakers open", colors.alarm, r.breaker, true]], least: 1 },
];

function figure(where, key, title, lines) {
  const id = where + "-" + key;
  let canvas = byId(id);
  if (!canvas) {
    const f = document.createElement("figure");
    const caption = document.createElement("figcaption");
    canvas = document.createElement("canvas");
    canvas.id = id;
    canvas.setAttribute("role", "img");
    f.append(caption, canvas);
    byId(where).append(f);
  }
  const caption = canvas.previousSibling;
  caption.replaceChildren(title, ...lines.map(([name, color]) => {
    const span = document.createElement("span");
    span.style.setProperty("color", color);
    span.textContent = name;
    return span;
  }));
  return canvas;
}

function draw() {
  if (!last) return;
  const [mine, ...others] = last.results;
  panels.forEach((p, i) => {
    const lines = p.lines(mine);
    plot(figure("charts", i, p.title, lines), lines, { unit: p.unit, least: p.least, trigger: mine.trigger, duration: mine.duration_s, title: p.title });
  });
  const top = Math.max(...others.map((r) => Math.max(...sum(r.fresh, r.retry))));
  others.forEach((r) => {
    const lines = [["attempts", colors.retry, sum(r.fresh, r.retry), true], ["good", colors.good, r.good, true]];
    plot(figure("policies", r.name, r.title, lines), lines, { unit: "/s", top, trigger: r.trigger, duration: r.duration_s, title: r.title + ": " + r.headline });
  });
  last.herds.forEach((h, i) => {
    const peak = Math.max(...h.counts);
    const lines = [["fullest millisecond: " + peak, colors.retry, h.counts, true]];
    plot(figure("herds", i, h.name, lines), lines, { unit: "", duration: h.counts.length / 1000, bars: true, title: h.name + ": at most " + peak + " retries in a millisecond" });
  });
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
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, box.width, box.height);
  const [left, right, top, bottom] = [52, 8, 6, 18];
  const [pw, ph] = [box.width - left - right, box.height - top - bottom];
  let peak = o.top || o.least || 0;
  if (!o.top) for (const [, , values] of lines) for (const v of values) if (v > peak) peak = v;
  const high = roundUp(peak);
  const y = (v) => top + ph * (1 - Math.min(v / high, 1));
  if (o.trigger) {
    g.fillStyle = "rgba(221, 107, 32, .18)";
    const from = left + (pw * o.trigger[0]) / o.duration;
    g.fillRect(from, top, Math.max(1, (pw * (Math.min(o.trigger[1], o.duration) - o.trigger[0])) / o.duration), ph);
  }
  g.font = "11px system-ui, sans-serif";
  g.fillStyle = g.strokeStyle = style.color;
  g.lineWidth = 1;
  g.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    g.globalAlpha = 0.75;
    g.fillText(measure(high * part, o.unit), left - 4, Math.max(y(high * part) + 4, 10));
    g.globalAlpha = 0.15;
    g.beginPath();
    g.moveTo(left, y(high * part));
    g.lineTo(left + pw, y(high * part));
    g.stroke();
  }
  g.globalAlpha = 0.75;
  for (const part of [0, 0.5, 1]) {
    g.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
    g.fillText(amount(o.duration * part) + " s", left + pw * part, box.height - 4);
  }
  g.globalAlpha = 1;
  for (const [, color, values, area] of lines) curve(g, values, color, area, { left, pw, y, bars: o.bars });
}

function curve(g, values, color, area, o) {
  const n = values.length;
  g.strokeStyle = g.fillStyle = color;
  g.lineWidth = 1.5;
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
    spans.at(-1).push([x, o.y(v)]);
    open = true;
  });
  g.stroke();
  if (!area) return;
  g.globalAlpha = 0.22;
  for (const s of spans) {
    g.beginPath();
    g.moveTo(s[0][0], o.y(0));
    for (const [px, py] of s) g.lineTo(px, py);
    g.lineTo(s.at(-1)[0], o.y(0));
    g.fill();
  }
  g.globalAlpha = 1;
}

build();
fromURL();
changed();
addEventListener("hashchange", () => { fromURL(); changed(); });
addEventListener("resize", () => requestAnimationFrame(draw));
