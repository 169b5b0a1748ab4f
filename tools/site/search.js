// Searches as the page does: node search.js SITE QUERY. Prints the hits as page#anchor.
"use strict";
const fs = require("fs");
const path = require("path");
globalThis.window = {};
require(path.resolve(process.argv[2], "search-index.js"));
const { prepare, find } = require("../../site/assets/search.js");
for (const { entry } of find(prepare(window.forbearIndex), process.argv[3])) console.log(entry[0] + "#" + entry[1]);
