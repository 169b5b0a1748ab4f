package site

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSearchIndex holds the index to the pages: each entry leads to an anchor that
// is there.
func TestSearchIndex(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(built, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	all, count := pages(t), 0
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "[") {
			continue
		}
		var entry [5]string
		if err := json.Unmarshal([]byte(strings.TrimSuffix(line, ",\n")), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		count++
		name := entry[0]
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		p := all[name]
		if p == nil {
			t.Errorf("the index has %q, which is no page", entry[0])
		} else if entry[1] != "" && !p.ids[entry[1]] {
			t.Errorf("the index has %s#%s, which is no anchor", entry[0], entry[1])
		}
	}
	if count < 400 {
		t.Errorf("%d entries: too few for the documents", count)
	}
}

// TestSearchFinds asks what readers ask, by the page's own script.
func TestSearchFinds(t *testing.T) {
	node := needs(t, "node")
	for query, want := range map[string]string{
		"Retry-After":     "guides/retry-after.html#",
		"dead letter":     "guides/webhooks-dead-letters.html#",
		"FC301":           "reference/findings.html#fc301",
		"FB1001":          "reference/lint.html#fb1001",
		"breaker opened":  "runbooks/forbearbreakeropened.html#",
		"max_retries":     "guides/policy.html#write-a-file",
		"outbox":          "guides/outbox.html#",
		"explain":         "reference/commands.html#forbear-explain",
		"idempotency key": "guides/idempotency.html#",
	} {
		command := exec.Command(node, "search.js", built, query)
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		hits := strings.Fields(string(out))
		if !slices.ContainsFunc(hits[:min(5, len(hits))], func(hit string) bool { return strings.HasPrefix(hit, want) }) {
			t.Errorf("%q is not among the first five of %q: %q", want, query, hits)
		}
	}
}
