package lint_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/driver"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

// retries is code on which most rules ask what a loop does with a status.
const retries = `package m

import (
	"errors"
	"net/http"
	"time"
)

func get(c *http.Client, req *http.Request, strict bool) (*http.Response, error) {
	for range 9 {
		resp, err := c.Do(req)
		if err == nil && resp.StatusCode/100 == 2 && good(resp.StatusCode, strict) {
			return resp, nil
		}
		time.Sleep(time.Second)
	}
	return nil, errors.New("no answer")
}

func quiet(c *http.Client, req *http.Request) (*http.Response, error) {
	for { //nolint:forbear // several rules use the directive
		resp, err := c.Do(req)
		if err == nil {
			return resp, nil
		}
		time.Sleep(time.Second)
	}
}

func good(code int, strict bool) bool {
	most := 299
	if strict {
		most = 204
	}
	return code >= 200 && code <= most
}
`

// TestRulesAtOnce runs the rules of a package at once, as go vet does: the race
// detector sees what they share.
func TestRulesAtOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "m.go": retries} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded := slices.Collect(maps.Values(ruletest.Load(t, dir, ".")))
	findings := func(sequential bool) []string {
		graph, err := checker.Analyze(lint.Analyzers(), loaded, &checker.Options{Sequential: sequential})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, act := range graph.Roots {
			if act.Err != nil {
				t.Error(act, act.Err)
			}
			for _, d := range act.Diagnostics {
				said = append(said, d.Message)
			}
		}
		slices.Sort(said)
		return said
	}
	want := findings(true)
	if len(want) < 2 {
		t.Errorf("one after the other: %q, want at least two findings", want)
	}
	for range 3 {
		if got := findings(false); !slices.Equal(got, want) {
			t.Fatalf("at once: %q, want %q", got, want)
		}
	}
}

// TestSameOutput: the order in which packages are judged does not show.
func TestSameOutput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-trimpath")
	files := map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n"}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		files[name+".go"] = strings.Replace(retries, "package m", "package "+name, 1)
	}
	for name, text := range files {
		if base, ok := strings.CutSuffix(name, ".go"); ok {
			name = filepath.Join(base, name)
		}
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	findings := func(workers string) string {
		var out, errs bytes.Buffer
		if code := driver.Main(t.Context(), nil, []string{"-C", dir, "-q", "-o", "json", "-p", workers, "--all", "./..."}, &out, &errs); code != driver.ExitFindings {
			t.Fatalf("got %d: %s", code, errs.String())
		}
		return out.String()
	}
	want := findings("1")
	for range 3 {
		if got := findings("8"); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}
