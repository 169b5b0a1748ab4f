//forbear:plain nothing runs at once
package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes one with a client of two set-ups, one of which speaks gRPC, and a third
// that there is no advice for.
func repository(t *testing.T) (root string, reports []string) {
	t.Helper()
	root = t.TempDir()
	marks := "# Title\n\n" + begin + "old\n" + end + "\nThe end.\n"
	for name, text := range map[string]string{
		"probe/zoo/zoo.tsv": "name\tlanguage\tversion\tcommand\n" +
			"fetcher\tPython\tv\tpython3 python/fetcher.py {url}\nfetcher-grpc\tC\tv\tfetcher {url}\nunheard\tC\tv\tunheard {url}\nsilent\tC\tv\tsilent {url}\n",
		"probe/zoo/python/fetcher.py": "",
		"cmd/forbear/internal/probe/advice/clients.json": `[{"name": "fetcher", "version": "1.2", "zoo": ["fetcher", "fetcher-grpc"],
			"sources": ["https://example.com/docs"], "advice": {"R-6": "Give it a key."}}]`,
		"docs/clients.md":       marks,
		"docs/compare.md":       marks,
		"docs/clients/gone.md":  generated + "# gone\n",
		"docs/clients/other.md": "# Written by hand\n",
		"r/fetcher.version":     "fetcher 1.2.3 (linux)\n",
		"r/fetcher.json": `{"policy": "# What was seen of fetcher.\nservice: client\n", "cases": [
			{"id": "healthy", "outcome": "told", "runs": [{"arrivals": [{"at_ns": 1}]}]},
			{"id": "R-4/503/GET", "rule": "R-4", "outcome": "holds", "runs": [{"arrivals": [{"at_ns": 1}, {"at_ns": 2}]}]},
			{"id": "R-4/hang/GET", "rule": "R-4", "outcome": "holds", "runs": [{"arrivals": [{"at_ns": 1}, {"at_ns": 2}]}]},
			{"id": "R-6/503/POST", "rule": "R-6", "outcome": "fails", "title": "503 to a POST", "why": "sent again without an idempotency key"},
			{"id": "R-2/outage", "rule": "R-2", "outcome": "holds", "runs": [
				{"arrivals": [{"at_ns": 0}, {"at_ns": 1000000000}]}, {"arrivals": [{"at_ns": 0}, {"at_ns": 1000000000}, {"at_ns": 3000000000}]}, {"arrivals": []}]},
			{"id": "R-9/expired", "rule": "R-9", "outcome": "fails", "title": "an expired certificate", "why": "tried 2 times", "runs": [{"connections": [{}, {}]}]},
			{"id": "R-1/law", "rule": "R-1", "outcome": "fails", "title": "the law of the waits", "why": "no jitter"}
			], "law": {"law": {"name": "no jitter"}, "ceilings_ns": [1000000000, 2012345678]}}`,
		"r/fetcher-grpc.json": `{"cases": [
			{"id": "healthy", "outcome": "told", "runs": [{"arrivals": [{"at_ns": 1}]}]},
			{"id": "R-4/UNAVAILABLE", "rule": "R-4", "outcome": "holds", "runs": [{"arrivals": [{"at_ns": 1}, {"at_ns": 2}]}]}]}`,
		"r/unheard.json": `{"cases": [{"id": "healthy", "outcome": "told", "runs": [{"arrivals": [{"at_ns": 1}]}]}]}`,
		"r/silent.json":  `{"cases": [{"id": "healthy", "outcome": "not judged", "runs": [{"arrivals": []}]}]}`,
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".json" && strings.HasPrefix(name, "r/") {
			reports = append(reports, file)
		}
	}
	return root, reports
}

// TestPagesFromReports: reports become a table by language, its sums, and a page for each
// client, and the pages of clients that are gone go.
func TestPagesFromReports(t *testing.T) {
	root, reports := repository(t)
	for range 2 { // once more changes nothing
		if err := update(root, reports); err != nil {
			t.Fatal(err)
		}
	}
	for name, wants := range map[string][]string{
		"docs/clients.md": {
			"# Title\n", "This table is of 2", "\nThe end.\n",
			"| [fetcher-grpc](clients/fetcher.md) | C | 0 |  |  | UNAVAILABLE |  |  |  |\n| [unheard](clients/unheard.md) | C |",
			"| [fetcher 1.2.3](clients/fetcher.md) | Python | 3 | 1 to 2 | 1s, 2s; no jitter | 503 | 503 |  | 2 |\n",
		},
		"docs/compare.md": {"Of 3 set-ups of clients without forbear, 1 retry in an outage.", "- 1 try an expired certificate"},
		"docs/clients/fetcher.md": {
			generated + "# fetcher\n", "## fetcher 1.2.3\n\n[python/fetcher.py](../../probe/zoo/python/fetcher.py)", "[zoo.tsv](../../probe/zoo/zoo.tsv)",
			"- Requests for each call in an outage: 2.5\n- Longest call in an outage: 3s",
			"R-1  the law of the waits: no jitter\nR-6  503 to a POST: sent again without an idempotency key\nR-9  an expired", "```yaml\nservice: client\n```",
			"- R-6: Give it a key.\n\nRead in version 1.2:\n\n- <https://example.com/docs>\n",
		},
		"docs/clients/unheard.md": {generated + "# unheard\n"},
		"docs/clients/other.md":   {"# Written by hand\n"},
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: want %q in\n%s", name, want, text)
			}
		}
	}
	for _, name := range []string{"gone", "silent"} {
		if _, err := os.Stat(filepath.Join(root, "docs/clients", name+".md")); err == nil {
			t.Errorf("%s has a page", name)
		}
	}
}

// TestFaultsAreNamed: a report that is broken, a page without marks, and advice for a set-up
// that is not there are faults.
func TestFaultsAreNamed(t *testing.T) {
	for name, text := range map[string]string{
		"r/fetcher.json":    "{",
		"docs/clients.md":   "# Title\n",
		"probe/zoo/zoo.tsv": "name\tlanguage\tversion\tcommand\nfetcher\tC\tv\tfetcher {url}\n",
	} {
		root, reports := repository(t)
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := update(root, reports); err == nil {
			t.Errorf("%s: got no fault", name)
		}
	}
}
