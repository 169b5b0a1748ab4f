// What a page does beyond links and forms. Without this file all of it works, but not as well.
"use strict";

const status = (text) => { document.getElementById("status").textContent = text; };

// Times are the reader's; the server's UTC stays in the title.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
function localTimes(root) {
  for (const t of root.querySelectorAll("time:not([data-local])")) {
    t.textContent = zone.format(new Date(t.dateTime));
    t.dataset.local = "";
  }
}

// Times of a filter are the reader's as well; without this they are UTC. What is no date,
// such as "24h", is left as it is.
const clock = /^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?$/;
function localFilters() {
  for (const name of document.querySelectorAll("[data-zone]")) name.textContent = "your time";
  for (const input of document.querySelectorAll("[data-time]")) {
    const t = new Date(input.value);
    if (input.value.endsWith("Z") && !isNaN(t)) input.value = t.toLocaleString("sv");
  }
}
// goOn follows what goes on by itself while its page is open: once each.
function goOn() {
  const go = document.querySelector("[data-go]");
  if (!go) return;
  delete go.dataset.go;
  go.click();
}
document.addEventListener("formdata", (e) => {
  for (const input of e.target.querySelectorAll("[data-time]")) {
    const t = new Date(input.value.length > 10 ? input.value.replace(" ", "T") : input.value + "T00:00");
    if (clock.test(input.value) && !isNaN(t)) e.formData.set(input.name, t.toISOString());
  }
  if (e.target.method === "get") for (const [name, value] of [...e.formData]) if (value === "") e.formData.delete(name);
});

// select marks all rows of the page; what acts on all that match is a button of its own.
function select(box) {
  for (const other of box.closest("form").querySelectorAll("input[type=checkbox][name=id]")) other.checked = box.checked;
}

// copy works without TLS, too, where a page has no clipboard of its own.
async function copy(button) {
  const from = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(from.textContent);
  } catch {
    getSelection().selectAllChildren(from);
    if (!document.execCommand("copy")) {
      status("Copying is not allowed here: the text is selected, press Ctrl+C.");
      return;
    }
  }
  status("Copied.");
}

document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-copy]");
  if (button) copy(button);
});
document.addEventListener("change", (e) => { if (e.target.matches("[data-all]")) select(e.target); });

// What fails is said beside the page, which stays as it is.
document.addEventListener("htmx:responseError", (e) => status(e.detail.xhr.responseText || "The server refused this."));
document.addEventListener("htmx:sendError", () => status("The server did not respond: is forbear serve still running?"));
document.addEventListener("htmx:timeout", () => status("The server did not respond in time."));
const lost = "Live figures have stopped: the server is looked for.";
document.addEventListener("htmx:sseError", () => status(lost));
document.addEventListener("htmx:sseOpen", () => { if (document.getElementById("status").textContent === lost) status(""); });
document.addEventListener("htmx:sseClose", (e) => { if (e.detail.type === "message") status("Live figures have ended: reload the page."); });

// After a page was loaded in place, a reader begins at its heading.
document.addEventListener("htmx:afterSettle", (e) => {
  localTimes(document);
  localFilters();
  goOn();
  if (e.detail.boosted && e.detail.target === document.body) document.querySelector("h1")?.focus({ preventScroll: true });
});
document.addEventListener("htmx:oobAfterSwap", () => {
  localTimes(document);
  for (const old of document.querySelectorAll("#calls > :nth-child(n+65)")) old.remove();
});

document.addEventListener("DOMContentLoaded", () => {
  localTimes(document);
  localFilters();
  goOn();
  const insecure = document.getElementById("insecure");
  if (insecure) insecure.hidden = isSecureContext;
});
