// Loads the simulator, and runs the scenarios that it is sent.
"use strict";
importScripts("wasm_exec.js");
const go = new Go();
const bytes = fetch("forbear.wasm").then((r) => r.arrayBuffer());
bytes.then((b) => WebAssembly.instantiate(b, go.importObject)).then(({ instance }) => {
  go.run(instance);
  postMessage({ ready: true });
}).catch((e) => postMessage({ error: "The simulator did not load: " + e.message }));

onmessage = ({ data: { q, scenarios } }) => {
  const results = scenarios.map((s) => simulate(s));
  const failed = results.find((r) => r.error);
  postMessage(failed ? { q, error: failed.error } : { q, results });
};
