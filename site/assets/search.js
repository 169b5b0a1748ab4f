// What a search finds. An entry of the index is a part of a page with a heading:
// [page, anchor, title of the page, heading, text].
"use strict";

// prepare adds title, heading and text in lower case.
function prepare(entries) {
  return entries.map((e) => [...e, e[2].toLowerCase(), e[3].toLowerCase(), e[4].toLowerCase()]);
}

// What readers look for less often counts less.
const weights = [["project/changelog", 0.4], ["project/", 0.6], ["compare/", 0.7], ["reference/rules", 0.7], ["reference/", 0.85], ["runbooks/", 0.85], ["index", 0.8]];

// begins reports whether a word of text begins with word.
function begins(text, word) {
  for (let i = text.indexOf(word); i >= 0; i = text.indexOf(word, i + 1)) {
    if (i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1])) return true;
  }
  return false;
}

// rank returns how well an entry fits: every word must be in it. Headings count more
// than text, what begins a word more than what is inside of one, and in text, as
// in BM25, how often a word comes for the text's length.
function rank(entry, words, phrase) {
  const [page, anchor, , , , title, heading, text] = entry;
  const name = anchor ? heading : title;
  let sum = 0;
  for (const word of words) {
    const value = (s, whole, part) => (!s.includes(word) ? 0 : begins(s, word) ? whole : part);
    const often = text.split(word).length - 1;
    const here = value(name, 9, 4) + (anchor ? value(title, 4, 2) : 0) + (often ? (5 * often) / (often + 0.4 + text.length / 900) : 0);
    if (here === 0) return 0;
    sum += here;
  }
  if (words.length > 1) sum += (name.includes(phrase) ? 12 : 0) + (title.includes(phrase) ? 6 : 0) + (text.includes(phrase) ? 4 : 0);
  if (name === phrase) sum += 10;
  // A page of that very name: outbox is guides/outbox.html.
  if (!anchor) sum += words.includes(page.split("/").pop().replace(".html", "")) ? 12 : 0.5;
  return sum * (weights.find(([start]) => page.startsWith(start))?.[1] ?? 1);
}

function find(entries, query) {
  const phrase = query.toLowerCase().trim().replace(/\s+/g, " ");
  const words = phrase.split(" ").filter(Boolean);
  if (!words.length) return [];
  const found = entries.map((entry) => ({ entry, score: rank(entry, words, phrase) })).filter((f) => f.score > 0);
  return found.sort((a, b) => b.score - a.score).slice(0, 12).map((f) => ({ entry: f.entry, words }));
}

if (typeof module !== "undefined") module.exports = { prepare, find };
