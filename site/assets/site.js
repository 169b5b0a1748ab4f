// What the pages do beyond being read: search, copying code, light and dark, the
// place in the table of contents. Everything else works without this file.
"use strict";
const base = new URL(".", document.currentScript.src); // this file is at the root of the site

// Search. The index is a script, so that it loads from a folder, too; it comes
// with the first key. An entry is [page, anchor, title, heading, text].
const box = document.querySelector(".search");
const input = document.getElementById("q");
const hits = document.getElementById("hits");
let index;
let at = -1;

function load() {
  return index ??= new Promise((resolve, reject) => {
    const s = document.createElement("script");
    s.src = new URL("search-index.js", base);
    s.onload = () => resolve(prepare(window.forbearIndex));
    s.onerror = reject;
    document.head.append(s);
  });
}

// marked returns text as nodes, with the words marked.
function marked(text, words) {
  const low = text.toLowerCase();
  const nodes = [];
  let from = 0;
  while (from < text.length) {
    let [next, word] = [text.length, ""];
    for (const w of words) {
      const i = low.indexOf(w, from);
      if (i >= 0 && i < next) [next, word] = [i, w];
    }
    nodes.push(text.slice(from, next));
    if (!word) break;
    const m = document.createElement("mark");
    m.textContent = text.slice(next, next + word.length);
    nodes.push(m);
    from = next + word.length;
  }
  return nodes;
}

// excerpt cuts text around the first of the words.
function excerpt(text, words) {
  const low = text.toLowerCase();
  const first = Math.min(...words.map((w) => low.indexOf(w)).filter((i) => i >= 0), text.length);
  const from = first === text.length ? 0 : Math.max(0, text.lastIndexOf(" ", Math.max(0, first - 50)) + 1);
  return (from ? "… " : "") + text.slice(from, from + 150) + (from + 150 < text.length ? " …" : "");
}

function show(found, query) {
  at = found.length ? 0 : -1;
  hits.replaceChildren(...found.map(({ entry: [page, anchor, title, heading, text], words }, i) => {
    const li = document.createElement("li");
    li.role = "presentation";
    const a = document.createElement("a");
    a.id = "hit-" + i;
    a.role = "option";
    a.tabIndex = -1;
    a.href = new URL((page || "index.html") + (anchor ? "#" + anchor : ""), base);
    const b = document.createElement("b");
    b.append(...marked(heading || title, words));
    a.append(b);
    if (heading) a.append(small([title]));
    a.append(small(marked(excerpt(text, words), words)));
    li.append(a);
    return li;
  }));
  if (!found.length && query.trim()) {
    const li = document.createElement("li");
    li.className = "none";
    li.textContent = "Nothing has all of these words.";
    hits.append(li);
  }
  hits.hidden = !hits.children.length;
  input.setAttribute("aria-expanded", String(!hits.hidden));
  select(at);
}

function small(nodes) {
  const s = document.createElement("small");
  s.append(...nodes);
  return s;
}

function select(i) {
  const all = [...hits.querySelectorAll("a")];
  at = all.length ? (i + all.length) % all.length : -1;
  all.forEach((a, j) => a.setAttribute("aria-selected", String(j === at)));
  input.setAttribute("aria-activedescendant", at < 0 ? "" : "hit-" + at);
  all[at]?.scrollIntoView({ block: "nearest" });
}

box.hidden = false;
input.addEventListener("focus", () => void load().catch(() => {}));
input.addEventListener("input", async () => {
  const query = input.value;
  const entries = await load();
  if (query === input.value) show(find(entries, query), query);
});
input.addEventListener("keydown", (e) => {
  if (e.key === "ArrowDown" || e.key === "ArrowUp") {
    e.preventDefault();
    select(at + (e.key === "ArrowDown" ? 1 : -1));
  } else if (e.key === "Enter") {
    hits.querySelectorAll("a")[at]?.click();
  } else if (e.key === "Escape") {
    input.value = "";
    show([], "");
    input.blur();
  }
});
hits.addEventListener("click", () => { hits.hidden = true; });
document.addEventListener("click", (e) => { if (!box.contains(e.target)) hits.hidden = true; });
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  e.preventDefault();
  input.focus();
});

// Code is copied as it is written, without the prompts of a session.
for (const pre of document.querySelectorAll("article pre")) {
  if (pre.scrollWidth > pre.clientWidth) pre.tabIndex = 0; // so that keys can scroll it
  const frame = document.createElement("div");
  frame.className = "box";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.setAttribute("aria-label", "Copy");
  button.innerHTML = '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.4"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 3V2.5h-8v8H3"/></svg>';
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(typed(pre.textContent));
    button.style.color = "var(--green)";
    button.setAttribute("aria-label", "Copied");
    setTimeout(() => { button.style.color = ""; button.setAttribute("aria-label", "Copy"); }, 1500);
  });
  const outer = pre.closest(".highlight") ?? pre;
  outer.replaceWith(frame);
  frame.append(outer, button);
}

// Light and dark: the system's choice, until the reader makes one.
const theme = document.querySelector(".theme");
const root = document.documentElement;
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
if (stored()) root.dataset.theme = stored();
theme.hidden = false;
theme.addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page, then */ }
});

// The table of contents shows which part is being read.
const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
const heads = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
function follow() {
  const now = heads.findLast((h) => h.getBoundingClientRect().top < 120) ?? heads[0];
  for (const [id, a] of links) a.classList.toggle("now", id === now?.id);
}
if (heads.length) {
  addEventListener("scroll", follow, { passive: true });
  follow();
}

// The menu shows where it is.
const side = document.getElementById("nav");
const current = side.querySelector("[aria-current]");
if (current) side.scrollTop = current.offsetTop - side.clientHeight / 2;
