// The scenario of the page about storms, and the drawing of what comes of it. It
// is used by the page, and by the check that draws docs/concepts/storm.svg.
"use strict";
const capacity = 1_000; // requests a second that the service can take

const policies = [
  ["none", "No retries", { retries: 0, breaker: false }],
  ["naive", "Three retries, at once", { retries: 3, base: "100ms", cap: "2s", breaker: false, baseline: { wait: "none", no_budget: true, unchecked: true } }],
  ["jitter", "Three, with backoff and jitter", { retries: 3, base: "100ms", cap: "2s", breaker: false, baseline: { no_budget: true, unchecked: true } }],
  ["forbear", "forbear's default", { retries: 3, breaker: true }],
];

// scenario is a fleet of ten processes that sends load x capacity, and a
// service that fails a share of what it serves, from 10 s to 20 s.
function scenario({ load, share, policy }) {
  const [, , client] = policies.find(([name]) => name === policy);
  return {
    name: "page", duration: "60s", bin: "500ms", engine: "exact",
    fleets: [{ name: "clients", instances: 10, rate: Math.round(capacity * load), client: { timeout: "1s", ...client } }],
    services: [{ name: "service", capacity, concurrency: 5 }],
    faults: share > 0 ? [{ kind: "errors", at: "10s", for: "10s", rate: share }] : [],
  };
}

// chart draws the requests that the service is offered, as SVG.
function chart(result, load) {
  const [w, h, left, right, top, bottom] = [720, 300, 44, 8, 14, 24];
  const high = capacity * Math.max(1.25, 4.2 * load);
  const n = result.fresh.length;
  const x = (seconds) => left + ((w - left - right) * seconds) / result.duration_s;
  const y = (v) => top + (h - top - bottom) * (1 - Math.min(v / high, 1));
  const dot = (v, i) => x(((i + 0.5) * result.duration_s) / n).toFixed(1) + "," + y(v).toFixed(1);
  const sum = result.fresh.map((v, i) => v + result.retry[i]);
  const area = (upper, lower) => upper.map(dot).join(" ") + " " + lower.map(dot).reverse().join(" ");
  const zero = new Array(n).fill(0);
  const thousands = (v) => (v >= 1000 ? v / 1000 + " k" : String(v));
  const step = high > 2_500 ? 1_000 : 500;
  let grid = "";
  for (let v = 0; v <= high; v += step) grid += `<line class="grid" x1="${left}" x2="${w - right}" y1="${y(v).toFixed(1)}" y2="${y(v).toFixed(1)}"/><text x="${left - 6}" y="${(y(v) + 4).toFixed(1)}" text-anchor="end">${thousands(v)}</text>`;
  for (let s = 0; s <= 60; s += 10) grid += `<text x="${x(s).toFixed(1)}" y="${h - 6}" text-anchor="${s === 60 ? "end" : "middle"}">${s} s</text>`;
  const fault = result.trigger ? `<rect class="fault" x="${x(result.trigger[0]).toFixed(1)}" y="${top}" width="${(x(result.trigger[1]) - x(result.trigger[0])).toFixed(1)}" height="${h - top - bottom}"/><text x="${(x(result.trigger[0]) + 6).toFixed(1)}" y="${top + 14}">it fails</text>` : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" class="storm" viewBox="0 0 ${w} ${h}" role="img" aria-label="Requests a second over a minute: first attempts, retries on top, and calls that end well">${fault}${grid}` +
    `<polygon class="fresh" points="${area(result.fresh, zero)}"/><polygon class="retry" points="${area(sum, result.fresh)}"/>` +
    `<polyline class="good" points="${result.good.map(dot).join(" ")}"/>` +
    `<line class="limit" x1="${left}" x2="${w - right}" y1="${y(capacity).toFixed(1)}" y2="${y(capacity).toFixed(1)}"/><text class="name" x="${w - right - 4}" y="${(y(capacity) - 6).toFixed(1)}" text-anchor="end">as much as it can take</text></svg>`;
}

// standalone is the chart with a style of its own, for a file.
function standalone(result, load) {
  const style = `<style>text{font:12px system-ui,sans-serif;fill:#586267}.name{fill:#22282b}.grid{stroke:#586267;stroke-opacity:.18}.fault{fill:#b4481a;fill-opacity:.1}.fresh{fill:#14757a;fill-opacity:.5}.retry{fill:#d9622b;fill-opacity:.6}.good{fill:none;stroke:#1d5c38;stroke-width:1.8}.limit{stroke:#586267;stroke-dasharray:5 4}@media(prefers-color-scheme:dark){text{fill:#9aa7ad}.name{fill:#e4e9eb}.grid{stroke:#9aa7ad}.limit{stroke:#9aa7ad}.fresh{fill:#3aa9b0}.good{stroke:#6fcf97}}</style>`;
  return chart(result, load).replace(/(<svg[^>]*>)/, "$1" + style) + "\n";
}

if (typeof module !== "undefined") module.exports = { scenario, standalone, policies };
