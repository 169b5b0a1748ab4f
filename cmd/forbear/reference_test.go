package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/reference"
	"github.com/forbear-go/forbear/reason"
)

var update = flag.Bool("update", false, "write docs/reference anew")

// The pages of docs/reference are what the code says.
func TestReference(t *testing.T) {
	pages := map[string]string{
		"commands.md": reference.Commands(commands.Program()), "findings.md": reference.Findings(), "environment.md": reference.Environment(),
	}
	add := func(name string) func(string, error) {
		return func(text string, err error) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			pages[name] = text
		}
	}
	add("policy.md")(reference.Policy())
	add("metrics.md")(reference.Metrics("internal/serve", "internal/durable"))
	add("reasons.md")(reference.Reasons("../.."))
	add("api.md")(reference.API([]byte(slurp(t, "internal/durable/openapi.json"))))
	for name, text := range pages {
		file := filepath.Join("../../docs/reference", name)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("docs/reference/%s is not what the code says (%v): make reference", name, err)
		}
	}
}

// Each reason has the heading that its messages link to.
func TestReasonsAreLinked(t *testing.T) {
	page := slurp(t, "../../docs/reference/reasons.md")
	for r := reason.None + 1; r.String() != "invalid"; r++ {
		if file, anchor, _ := strings.Cut(r.URL(), "#"); !strings.HasSuffix(file, "/docs/reference/reasons.md") ||
			!strings.Contains(page, "\n### `"+anchor+"`\n") {
			t.Errorf("%v: %s is not there", r, r.URL())
		}
	}
}

// Each variable of forbear's that its sources name is in the reference, and no other.
func TestEnvironmentIsComplete(t *testing.T) {
	variable := regexp.MustCompile(`"(FORBEAR_[A-Z_]*[A-Z]_?)"`)
	// Of tests, of the programs in guides and examples, and of make ablate.
	apart := []string{"FORBEAR_RING", "FORBEAR_VECTORS", "FORBEAR_LINT_WITHOUT"}
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"bin", "bench", "tools", "examples", "testdata", "reference", "docs"}, d.Name()) || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		for _, m := range variable.FindAllStringSubmatch(slurp(t, name), -1) {
			if v := strings.Replace(m[1]+"$", "SECRET_$", "SECRET_NAME", 1); !slices.Contains(apart, m[1]) {
				found[strings.TrimSuffix(v, "$")] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range reference.Variables {
		if !found[v[0]] {
			t.Errorf("%s is in the reference, and nothing reads it", v[0])
		}
		delete(found, v[0])
	}
	for v := range found {
		t.Errorf("%s is read, and not in the reference: see internal/testkit/reference/environment.go", v)
	}
}
