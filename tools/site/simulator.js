// Runs the page's simulator outside of a browser: node simulator.js SITE. Prints the
// scenario that the page begins with, its result and its picture.
"use strict";
const fs = require("fs");
const path = require("path");
const site = path.resolve(process.argv[2]);
const { scenario, standalone } = require("../../site/assets/storm.js");
globalThis.crypto ??= require("crypto").webcrypto; // Node.js 18 has it there alone
require(path.join(site, "sim/wasm_exec.js"));

const go = new Go();
WebAssembly.instantiate(fs.readFileSync(path.join(site, "sim/forbear.wasm")), go.importObject).then(({ instance }) => {
  go.run(instance);
  const q = { load: 0.7, share: 0.6, policy: "naive" };
  const result = JSON.parse(simulate(JSON.stringify(scenario(q))));
  fs.writeSync(1, JSON.stringify({ scenario: scenario(q), result, picture: standalone(result, q.load) }));
  process.exit(0);
});
