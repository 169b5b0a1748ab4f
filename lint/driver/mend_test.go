package driver

import (
	"encoding/json"
	"flag"
	"go/format"
	"os"
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
	seen := map[string]bool{}
	for _, cases := range together(goldens(t, "testdata/mends")) {
		mends(t, cases, seen)
	}
	for _, m := range mend.Messages {
		if !seen[m] {
			t.Errorf("no golden file shows the fix %q", m)
		}
	}
}

// mendable is a finding as far as TestMends looks at it.
type mendable struct {
	ID, Function, File string
	Fixes              []struct{ Message string }
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

func mends(t *testing.T, cases []*golden, seen map[string]bool) {
	t.Helper()
	dir := shared(t, cases)
	mended := map[mendableAt]bool{}
	for _, f := range findings(t, dir) {
		for i, fix := range f.Fixes {
			seen[fix.Message] = true
			if i == 0 {
				mended[mendableAt{f.ID, f.Function, f.File}] = true
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
		if mended[mendableAt{f.ID, f.Function, f.File}] || len(f.Fixes) > 0 {
			t.Errorf("%s in %s of %s is still found, with the fixes %v", f.ID, f.Function, f.File, f.Fixes)
		}
	}
	for _, c := range cases {
		for name, want := range c.want() {
			got := read(t, dir, name)
			if formatted, err := format.Source([]byte(got)); err != nil || string(formatted) != got {
				t.Errorf("%s is not formatted: %v", name, err)
			}
			if !*update && got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		}
		if *update {
			c.write(t, dir)
		}
	}
	goCommand(t, dir, "vet", "./...")
	goCommand(t, dir, "test", "-vet=off", "./...")
}

// write makes what the case became its golden files.
func (c *golden) write(t *testing.T, dir string) {
	t.Helper()
	for i, f := range c.archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".golden"); ok {
			c.archive.Files[i].Data = []byte(c.back(read(t, dir, c.name+"/"+base)))
		}
	}
	if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// mendableAt is a rule in a function of a file.
type mendableAt struct{ id, function, file string }
