"use strict";

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
      body: JSON.stringify(question()),
    });
    const body = await r.json();
    if (r.ok) show(body, performance.now() - start);
    else refused(body.detail || body.title, body.errors);
  } catch (e) {
    refused(e.message);
  }
  asking = false;
  if (again) {
    again = false;
    ask();
  }
}

// question is the request. Layers that know of each other need layers.
function question() {
  const s = scenario();
  const layers = s.services.some((v) => v.calls) ? ["one-layer"] : [];
  return { scenario: s, variants: ["", ...five, ...layers], herd: 1000, policy: file ? { text: file.text, dependency: file.dependency } : undefined };
}

// refused says why nothing was run: each mistake with its place.
function refused(reason, mistakes = []) {
  byId("outcome").hidden = true; // it is of another run
  byId("verdict").className = "error";
  byId("verdict").textContent = mistakes.length ? "Not run. Correct " + (file ? file.name : "the settings") + ":" : "Not run: " + reason;
  byId("mistakes").replaceChildren(...mistakes.map((m) => {
    const li = document.createElement("li");
    li.textContent = m.path + ": " + m.detail;
    return li;
  }));
}

let last = null;

function show(response, took) {
  last = response;
  byId("outcome").hidden = false;
  byId("mistakes").replaceChildren();
  choose(response.dependencies || []);
  const r = response.results[0];
  const s = r.summary;
  const verdict = byId("verdict");
  if (verdict.textContent !== r.headline) verdict.textContent = r.headline;
  verdict.className = s.verdict;
  const word = [...document.querySelectorAll("#words dt")].find((dt) => dt.textContent.toLowerCase() === s.verdict);
  note(byId("meaning"), word && word.textContent + ": " + word.nextElementSibling.textContent);
  numbers([
    ["good calls", percent(s.good / s.calls), "of all calls"], ["time to recover", recovery(s), "after the fault"],
    ["multiplier", s.multiplier.toFixed(3) + "x", "attempts for a call"], ["peak", s.peak_multiplier.toFixed(2) + "x", "highest multiplier"],
    ["wasted work", percent(s.wasted), "done too late"], ["longest queue", amount(s.max_queue_s) + " s", "of work waits"],
    ["p50", measure(s.p50_ms, " ms"), "half are faster"], ["p99", measure(s.p99_ms, " ms"), "1 in 100 is slower"],
    ["attempts", amount(s.attempts), "sent, with retries"],
    ["budget refused", amount(s.budget_refused), "retries not made"], ["breaker refused", amount(s.breaker_refused), "calls not sent"],
    ["limit refused", amount(s.concurrency_refused), "max_concurrent"],
  ]);
  note(byId("services"), r.services.length > 1 && "Requests for each call: " + r.services.map((v) => v.name + " " + amount(v.per_call)).join(", ") + ".");
  byId("notes").textContent = (r.notes || []).join("; ");
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
    for (const [name, , about] of list) {
      const div = document.createElement("div");
      div.append(...[["dt", name], ["dd", ""], ["dd", about]].map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text })));
      dl.append(div);
    }
  }
  list.forEach(([, value], i) => { dl.children[i].children[1].textContent = value; });
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

// choose fills the menu of the policy file's dependencies.
function choose(names) {
  const menu = byId("dependency");
  byId("dependency-row").hidden = !file;
  if (names.join() !== [...menu.options].map((o) => o.value).join()) menu.replaceChildren(...names.map((n) => new Option(n)));
  menu.value = file?.dependency || names[0] || "";
}

// maxPolicy is the largest policy file that is sent, in bytes. The server has the same bound.
const maxPolicy = 256 << 10;

async function load(picked) {
  file = null;
  choose([]);
  if (!picked) return changed();
  if (picked.size > maxPolicy) return refused(picked.name + " is larger than " + maxPolicy / 1024 + " KiB");
  file = { name: picked.name, text: await picked.text(), dependency: "" };
  choose([]);
  changed();
}

function forget() {
  byId("file").value = "";
  load();
}

async function start() {
  build();
  const wide = matchMedia("(min-width: 60rem)");
  byId("settings").open = wide.matches;
  wide.addEventListener("change", () => { byId("settings").open = wide.matches; });
  byId("file").addEventListener("change", (e) => load(e.target.files[0]));
  byId("remove").addEventListener("click", () => { forget(); byId("file").focus(); });
  byId("reset").addEventListener("click", () => { reset(); forget(); });
  byId("dependency").addEventListener("input", (e) => { file.dependency = e.target.value; changed(); });
  addEventListener("hashchange", () => { fromURL(); changed(); });
  addEventListener("resize", () => requestAnimationFrame(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  try {
    cases = await (await fetch("api/scenarios")).json();
    for (const c of cases) byId("case").add(new Option(c.name, c.name));
  } catch {
    byId("case").disabled = true; // the sliders work without cases
  }
  fromURL();
  changed();
}

start();
