"use strict";

// Every control: where it stands, how its position becomes a value, how the
// value reads. The URL's fragment holds the positions that differ from the first.
// An option may bring a text that explains it; hint explains a control.
const log = (lo, hi) => ({ min: Math.log10(lo), max: Math.log10(hi), step: 0.01, value: (p) => nice(10 ** p) });
const lin = (lo, hi, step) => ({ min: lo, max: hi, step, value: (p) => p });

const controls = [
  { id: "case", group: "start", label: "Case", options: [["", "your own settings"]] },
  { id: "load", group: "load", label: "Load", ...log(100, 1e8), start: 4, text: (v) => amount(v) + " req/s" },
  { id: "use", group: "load", label: "Load as a part of the capacity", ...lin(20, 130, 1), start: 70, text: (v) => v + " %", hint: "A request takes 50 ms on average." },
  { id: "clients", group: "load", label: "Client instances", hint: "Each has a budget and a breaker of its own.", ...log(1, 1e5), start: 2, text: amount, value: (p) => Math.max(1, Math.round(10 ** p)) },
  { id: "loop", group: "load", label: "Clients", options: [["open", "send at their own pace", "An open loop: the load stays the same while the service fails."], ["closed", "wait for each response", "A closed loop: each user waits for a response, thinks for a second, and calls again. A slow service gets fewer calls."]] },
  { id: "fault", group: "fault", label: "Kind", options: [
    ["brownout", "brownout", "The service works with a part of its capacity."], ["outage", "outage (503)", "A share of the requests is refused at once with status 503."],
    ["errors", "errors, by chance", "A share of the attempts fails, each by chance. A retry may succeed."], ["sticky", "errors, always the same calls", "A share of the calls fails on every attempt. Retries do not help."],
    ["load", "errors, by load", "What exceeds a part of the usual load fails. Retries add to it."], ["pause", "pause", "The service stands still, as in a garbage collection. Requests queue."],
    ["slow_start", "slow start", "The capacity drops and climbs back, as after a restart with cold caches."], ["spike", "spike of load", "The clients call more often."],
    ["partition", "partition", "The network loses all requests of a share of the clients."]] },
  { id: "length", group: "fault", label: "Length", ...log(0.1, 30), start: 1, text: (v) => v + " s" },
  { id: "depth", group: "fault", label: "Severity", ...lin(5, 100, 5), start: 50, text: (v) => severity(v) },
  { id: "retries", group: "retry", label: "Retries", ...lin(0, 10, 1), start: 3, text: (v) => v + (v > 5 ? " (R-2 allows 5)" : "") },
  { id: "base", group: "retry", label: "Backoff base", ...log(0.01, 10), start: -1, text: duration, hint: "The bound of the first wait. It doubles with each retry, up to the cap." },
  { id: "cap", group: "retry", label: "Backoff cap", ...log(0.1, 60), start: Math.log10(2), text: duration },
  { id: "timeout", group: "retry", label: "Timeout of an attempt", ...log(0.05, 30), start: 0, text: duration },
  { id: "jitter", group: "retry", label: "Wait", options: [["full", "full jitter", "By chance, between nothing and the bound."], ["exponential", "no jitter", "Always the bound: clients that fail together return together."], ["equal", "equal jitter", "Half the bound, and up to as much again by chance."], ["fixed", "fixed", "Always the base."], ["none", "no backoff", "Retries go out at once."]] },
  { id: "budget", group: "retry", label: "Retry budget", ...lin(0, 50, 1), start: 20, text: (v) => (v === 0 ? "none" : v + " %" + (v > 20 ? " (R-7 allows 20)" : "")), hint: "Retries, as a part of the calls within the window." },
  { id: "window", group: "retry", label: "Budget window", ...lin(10, 120, 5), start: 30, text: (v) => v + " s" },
  { id: "breaker", group: "retry", label: "Circuit breaker", check: true, start: true, hint: "Refuses calls at once while too many fail." },
  { id: "queue", group: "service", label: "Queue bound", ...lin(0, 10, 0.1), start: 0, text: (v) => (v === 0 ? "none" : v.toFixed(1) + " s"), hint: "Requests that would wait longer get a 503 at once." },
  { id: "after", group: "service", label: "Retry-After on 503", ...lin(0, 10, 0.5), start: 0, text: (v) => (v === 0 ? "none" : v + " s"), hint: "The service says how long to wait." },
  { id: "drop", group: "service", label: "Drop expired work", check: true, start: false, hint: "Skips queued requests whose client has given up." },
];
const five = ["none", "backoff", "jitter", "budget", "breaker"];
let cases = []; // the built-in scenarios
let file = null; // the policy file: its name, text and chosen dependency
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
  if (v === null) return "-";
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
    if (c.hint || c.options?.[0][2]) {
      const hint = document.createElement("small");
      hint.id = c.id + "-hint";
      hint.textContent = c.hint || "";
      input.setAttribute("aria-describedby", hint.id);
      row.append(hint);
    }
    byId("group-" + c.group).append(row);
    input.addEventListener("input", changed);
  }
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

function reset() {
  for (const c of controls) put(c, c.start);
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
  // A case brings its own clients, services and faults; a policy file, the retries.
  for (const group of ["load", "fault", "retry", "service"]) {
    const by = group === "retry" && file ? "The policy file" : state.case ? "The case" : "";
    byId(group + "-fields").disabled = by !== "";
    note(byId(group + "-fields").querySelector("p"), by && by + " sets these: they are switched off.");
  }
  const chosen = cases.find((c) => c.name === state.case);
  note(byId("about"), chosen && chosen.description + ". The case runs as it is, and of the settings only a policy file changes it.");
  for (const c of controls) {
    const hint = byId(c.id + "-hint");
    if (hint && c.options) hint.textContent = c.options.find(([value]) => value === state[c.id])[2];
    const out = byId(c.id + "-out");
    if (!out) continue;
    out.textContent = byId(c.group + "-fields").disabled ? "-" : c.text(state[c.id]);
    byId(c.id).setAttribute("aria-valuetext", out.textContent);
  }
  toURL();
  ask();
}

// note shows a text, or hides its place.
function note(place, text) {
  place.hidden = !text;
  place.textContent = text || "";
}

// secs writes seconds as Go reads them.
const secs = (v) => Math.round(v * 1e6) + "us";

function scenario() {
  const s = state;
  if (s.case) return cases.find((c) => c.name === s.case);
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
  // Enough servers for a sample to keep some.
  const service = { name: "service", capacity, time: "50ms" };
  if (s.queue > 0) service.queue = secs(s.queue);
  if (s.after > 0) service.retry_after = secs(s.after);
  if (s.drop) service.drop_expired = true;
  return { name: "page", duration: "60s", fleets: [fleet], services: [service], faults: [fault] };
}

