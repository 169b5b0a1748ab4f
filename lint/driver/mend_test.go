package driver

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/forbear-go/forbear/lint/internal/mend"
)

var update = flag.Bool("update-mends", false, "write the golden files of TestMends anew")

// TestMends holds the fixes of loops to golden files. The mended code compiles,
// is formatted, and passes the tests beside it, where there are some: they run
// it in virtual time and count its attempts and waits. The findings that were
// mended are gone: two runs mend everything.
func TestMends(t *testing.T) {
	names, err := filepath.Glob("testdata/mends/*.txtar")
	if err != nil || len(names) < 5 {
		t.Fatalf("got %v, %v; want the cases", names, err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { mends(t, name, seen) })
	}
	for _, m := range mend.Messages {
		if !seen[m] {
			t.Errorf("no golden file shows the fix %q", m)
		}
	}
}

// mendable is a finding as far as TestMends looks at it.
type mendable struct {
	ID, Function string
	Fixes        []struct{ Message string }
}

// findings lints a module and returns what is found, weak findings included.
func findings(t *testing.T, dir string) []mendable {
	t.Helper()
	code, out, errs := lintIn(t, dir, "--all", "-o", "json", "./...")
	if code == ExitUnjudged {
		t.Fatalf("got %s", errs)
	}
	var rep struct{ Findings []mendable }
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	return rep.Findings
}

func mends(t *testing.T, name string, seen map[string]bool) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, golden := map[string]string{}, map[string]string{}
	for _, f := range archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".golden"); ok {
			golden[base] = string(f.Data)
		} else {
			files[f.Name] = string(f.Data)
		}
	}
	dir := module(t, files)
	mended := map[mendableAt]bool{}
	for _, f := range findings(t, dir) {
		for i, fix := range f.Fixes {
			seen[fix.Message] = true
			if i == 0 {
				mended[mendableAt{f.ID, f.Function}] = true
			}
		}
	}
	var left []mendable
	for run := range 2 {
		if code, _, errs := lintIn(t, dir, "--fix", "./..."); code == ExitUnjudged {
			t.Fatalf("run %d: %s", run+1, errs)
		}
		left = findings(t, dir)
		if !slices.ContainsFunc(left, func(f mendable) bool { return len(f.Fixes) > 0 }) {
			break // another run would change nothing
		}
	}
	for _, f := range left {
		if mended[mendableAt{f.ID, f.Function}] || len(f.Fixes) > 0 {
			t.Errorf("%s in %s is still found, with the fixes %v", f.ID, f.Function, f.Fixes)
		}
	}
	for i, f := range archive.Files {
		base, ok := strings.CutSuffix(f.Name, ".golden")
		if !ok {
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, base))
		if err != nil {
			t.Fatal(err)
		}
		if formatted, err := format.Source(got); err != nil || !bytes.Equal(got, formatted) {
			t.Errorf("%s is not formatted: %v", base, err)
		}
		if *update {
			archive.Files[i].Data = got
		} else if string(got) != golden[base] {
			t.Errorf("got\n%s\nwant\n%s", got, golden[base])
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if files["m_test.go"] != "" {
		goCommand(t, dir, "test", "./...")
	} else {
		goCommand(t, dir, "vet", "./...")
	}
}

// mendableAt is a rule in a function.
type mendableAt struct{ id, function string }
