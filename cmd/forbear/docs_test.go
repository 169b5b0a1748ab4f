package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
)

var (
	namedCommand = regexp.MustCompile("(?m)(?:`|^ *\\$ )forbear ([a-z]+)((?: [a-z]+\\b)?)((?: +--?[a-z-]+)*)")
	namedMetric  = regexp.MustCompile("`((?:retry|dlq|timeout|circuit|bulkhead|tls)_[a-z_]+|forbear:[a-z_0-9:]+)\\b")
	pageLink     = regexp.MustCompile(`\]\(([^):]+\.(?:md|json))\)`)
)

// Each command, metric and page that the operators' pages name exists.
func TestOperatorsPages(t *testing.T) {
	const docs = "../../docs/"
	pages, err := filepath.Glob(docs + "runbooks/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d runbooks: %v", len(pages), err)
	}
	pages = append(pages, docs+"troubleshooting.md", docs+"alerts/README.md")
	scrape, rules := slurp(t, "../../promretry/testdata/scrape.txt"), slurp(t, docs+"alerts/forbear.rules.yml")
	for _, page := range pages {
		text := slurp(t, page)
		for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
			c, ok := commands.Program().Find(m[1])
			if !ok {
				t.Errorf("%s names %s, which does not exist", page, m[0])
				continue
			}
			help := invoke(t, "", c.Name, "--help").Out
			if verb := strings.TrimSpace(m[2]); (c.Name == "dlq" || c.Name == "sim") && verb != "" && !strings.Contains(help, verb) {
				t.Errorf("%s names forbear %s %s, which its help does not", page, c.Name, verb)
			}
			for flag := range strings.FieldsSeq(m[3]) {
				if !strings.Contains(help, "-"+strings.TrimLeft(flag, "-")+" ") {
					t.Errorf("%s names %s %s, which its help does not", page, c.Name, flag)
				}
			}
		}
		for _, m := range namedMetric.FindAllStringSubmatch(text, -1) {
			name := m[1]
			if !strings.Contains(scrape, "# TYPE "+name+" ") && !strings.Contains(rules, "record: "+name+"\n") {
				t.Errorf("%s names the metric %s, which does not exist", page, name)
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

// The six symptoms each have a cause, a fix, and a command or metric.
func TestTroubleshootingIsComplete(t *testing.T) {
	sections := strings.Split(slurp(t, "../../docs/troubleshooting.md"), "\n## ")
	symptoms := 0
	for _, s := range sections[1:] {
		if s[0] < '1' || s[0] > '9' {
			continue
		}
		symptoms++
		title, _, _ := strings.Cut(s, "\n")
		for _, part := range []string{"**Cause.**", "**Fix.**", "**What shows it.**"} {
			if !strings.Contains(s, part) {
				t.Errorf("%q lacks %s", title, part)
			}
		}
		if !namedCommand.MatchString(s) || !namedMetric.MatchString(s) {
			t.Errorf("%q names no command or no metric that shows it", title)
		}
	}
	if symptoms != 6 {
		t.Errorf("%d symptoms, want 6", symptoms)
	}
}

func slurp(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
