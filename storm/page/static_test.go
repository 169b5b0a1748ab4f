package page

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// get returns a file of the page as a browser gets it.
func get(t *testing.T, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if policy := w.Header().Get("Content-Security-Policy"); w.Code != http.StatusOK || !strings.Contains(policy, "script-src 'self'; style-src 'self'") {
		t.Fatalf("GET %s: %d, policy %q", path, w.Code, policy)
	}
	return w.Body.String()
}

var scripts = []string{"/controls.js", "/chart.js", "/app.js"}

// all returns the first group of every match.
func all(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// The page must work without a network. Its links lead to documents that exist; nothing
// else in it may point elsewhere, or be refused by its own content security policy.
func TestPageNeedsNothingElse(t *testing.T) {
	page := get(t, "/")
	links := `<a href="https://github\.com/forbear-go/forbear/blob/main/([^"]*)"`
	documents := all(links, page)
	if len(documents) < 5 {
		t.Errorf("%d links to the documents", len(documents))
	}
	for _, name := range documents {
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			t.Error(err)
		}
	}
	var files strings.Builder
	files.WriteString(regexp.MustCompile(links).ReplaceAllString(page, "") + get(t, "/style.css"))
	for _, name := range scripts {
		files.WriteString(get(t, name))
		if !strings.Contains(page, `<script src="`+name[1:]+`"></script>`) {
			t.Errorf("the page does not load %s", name)
		}
	}
	if bad := all(`(://|@import|url\(|<script>|<style|\sstyle=|\son[a-z]+=")`, files.String()); len(bad) > 0 {
		t.Errorf("the page has %q", bad)
	}
}

func TestScriptsFindTheirElements(t *testing.T) {
	page, code := get(t, "/"), ""
	for _, name := range scripts {
		code += get(t, name)
	}
	ids := map[string]bool{}
	for _, id := range append(all(` id="([^"]*)"`, page), all(`\{ id: "([^"]*)"`, code)...) {
		if ids[id] {
			t.Errorf("two elements have the id %q", id)
		}
		ids[id] = true
	}
	used := append(all(`byId\("([^"]*)"\)`, code), all(` (?:for|aria-describedby)="([^"]*)"`, page)...)
	for _, group := range all(`group: "([^"]*)"`, code) {
		used = append(used, "group-"+group)
	}
	if len(used) < 40 {
		t.Fatalf("%d uses of an id", len(used))
	}
	for _, id := range used {
		if !ids[id] {
			t.Errorf("no element has the id %q", id)
		}
	}
	for _, id := range all(`<(?:input|select)[^>]* id="([^"]*)"`, page) {
		if !strings.Contains(page, `<label for="`+id+`">`) {
			t.Errorf("%s has no label", id)
		}
	}
	if controls, labels := len(all(`(\{ id: ")`, code)), len(all(`(label: ")`, code)); controls != labels {
		t.Errorf("%d controls and %d labels", controls, labels)
	}
}

// A newcomer finds every word of the page explained on it.
func TestWordsAreExplained(t *testing.T) {
	page := get(t, "/")
	_, words, _ := strings.Cut(page, `id="words"`)
	for _, word := range []string{"Multiplier", "peak", "Goodput", "Metastable", "Wasted work", "Budget used", "Breaker open", "Self-inflicted", "Overloaded", "Limited", "p99", "orange band"} {
		if !strings.Contains(words, word) {
			t.Errorf("%q is not explained", word)
		}
	}
	// The kinds of faults, of clients and of waits are explained below their menus.
	for _, menu := range []string{"loop", "fault", "jitter"} {
		_, options, _ := strings.Cut(get(t, "/controls.js"), `id: "`+menu+`"`)
		options, _, _ = strings.Cut(options, " },\n")
		if n := len(all(`(\["[^"]*", "[^"]*", "[^"]*\."\])`, options)); n < 2 || n != strings.Count(options, `["`) {
			t.Errorf("%s: %d of the options have a text", menu, n)
		}
	}
}
