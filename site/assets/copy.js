// What the button beside a block of code copies.
"use strict";

// typed returns what was typed in a session: the lines behind a prompt, and those that go on
// from a line with a backslash at its end. Text without prompts is returned as it is.
function typed(text) {
  const lines = [];
  let more = false;
  for (const line of text.split("\n")) {
    const prompt = line.startsWith("$ ");
    if (prompt || more) lines.push(prompt ? line.slice(2) : line);
    more = (prompt || more) && line.endsWith("\\");
  }
  return lines.length ? lines.join("\n") : text;
}

if (typeof module !== "undefined") module.exports = { typed };
