//forbear:plain a simulation in one goroutine
package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What the demo says is what its two runs came to, and fits a terminal.
func TestShow(t *testing.T) {
	var b strings.Builder
	if err := show(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"retries as they are usually written: up to 4.3 requests a call\n",
		"a budget of 20 %, and a breaker: up to 1.1 requests a call\n",
		"21 % of the calls end well there, and 89 % with forbear",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(line); n > 90 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns, or colours: %s", n, line)
		}
	}
	var colours strings.Builder
	if err := show(&colours, true); err != nil || !strings.Contains(colours.String(), "\x1b[31m█") {
		t.Errorf("no red bar (%v): %q", err, colours.String())
	}
}
