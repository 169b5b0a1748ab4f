// The simulator in the page about storms. Another thread computes, in WebAssembly;
// without either, the picture in the text stays.
"use strict";
{
  const place = document.querySelector("[data-storm]");
  const here = new URL(".", document.currentScript.src);
  const form = document.createElement("form");
  form.className = "controls";
  form.innerHTML = `
    <label>Load <output id="load-out"></output><input type="range" id="load" min="40" max="95" step="5" value="70"></label>
    <label>Fails, for ten seconds <output id="share-out"></output><input type="range" id="share" min="0" max="100" step="5" value="60"></label>
    <fieldset><legend>When a call fails</legend>${policies.map(([name, title]) => `<label><input type="radio" name="policy" value="${name}"${name === "naive" ? " checked" : ""}>${title}</label>`).join("")}</fieldset>`;
  const status = document.createElement("p");
  status.className = "verdict";
  status.setAttribute("role", "status");
  status.textContent = "The simulator is loading.";
  const picture = document.createElement("div");
  picture.append(...place.childNodes);
  const legend = document.createElement("p");
  legend.className = "legend";
  legend.innerHTML = `<span class="fresh">first attempts</span> <span class="retry">retries</span> <span class="good">calls that end well (goodput)</span> <span class="fault">the time of the fault</span> <span class="limit">the service's capacity</span>`;
  const table = document.createElement("div");
  table.className = "table";
  const words = document.createElement("p");
  words.className = "legend";
  words.textContent = "Load, at worst: the most attempts, as a multiple of the usual calls. Well again: when as many calls end well as before. " +
    "Metastable: the fault is over and the trouble stays. forbear sim serve has other faults, the built-in cases and your policy file.";
  place.append(form, status, picture, legend, table, words);

  const chosen = () => ({ load: form.load.value / 100, share: form.share.value / 100, policy: form.policy.value });
  const missing = () => {
    status.textContent = "The simulator needs WebAssembly and a web server; the picture shows one run of it.";
    form.hidden = true;
  };
  let worker;
  try {
    worker = new Worker(new URL("sim/worker.js", here));
  } catch {
    worker = {}; // pages from a folder may not have one
    missing();
  }
  let busy = true; // until the worker says that it is there
  let again = true;
  const ask = () => {
    form.querySelector("#load-out").textContent = form.load.value + " % of capacity";
    form.querySelector("#share-out").textContent = form.share.value + " % of attempts";
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    const q = chosen();
    worker.postMessage({ q, scenarios: policies.map(([policy]) => JSON.stringify(scenario({ ...q, policy }))) });
  };
  const percent = (v) => (100 * v).toFixed(0) + " %";
  const times = (v) => v.toFixed(1) + "x";
  const ends = (s) => s.recovery_s < 0 || s.verdict === "metastable" ? "never, by itself" : s.recovery_s === 0 ? "at once" : "after " + s.recovery_s.toFixed(1) + " s";
  const said = (s, q) => {
    if (q.share === 0) return "Nothing fails.";
    if (s.verdict === "metastable") return "Metastable: the fault is over after ten seconds. The outage is not: the retries keep the service down.";
    return s.recovery_s > 0 ? `The service is well again ${s.recovery_s.toFixed(1)} s after the fault.` : "The service is well again as soon as the fault is over.";
  };

  worker.onmessage = ({ data }) => {
    busy = false;
    if (data.results) {
      const q = data.q;
      const all = data.results.map((r) => JSON.parse(r));
      const mine = all[policies.findIndex(([name]) => name === q.policy)];
      picture.innerHTML = chart(mine, q.load);
      const sentence = said(mine.summary, q);
      if (status.textContent !== sentence) status.textContent = sentence;
      status.classList.toggle("bad", mine.summary.verdict === "metastable");
      table.innerHTML = `<table><thead><tr><th scope="col">when a call fails</th><th scope="col" class="right">calls that end well</th><th scope="col" class="right">load, at worst</th><th scope="col">well again</th></tr></thead><tbody>` +
        all.map(({ summary: s, fresh, retry }, i) => `<tr${policies[i][0] === q.policy ? ' class="mine"' : ""}><td>${policies[i][1]}</td><td class="right">${percent(s.good / s.calls)}</td><td class="right">${times(Math.max(...fresh.map((v, j) => v + retry[j])) / capacity / q.load)}</td><td>${q.share === 0 ? "" : ends(s)}</td></tr>`).join("") + "</tbody></table>";
    }
    if (data.error) status.textContent = data.error;
    if (again) ask();
  };
  worker.onerror = missing;
  form.addEventListener("input", ask);
  form.addEventListener("submit", (e) => e.preventDefault());
  ask();
}
