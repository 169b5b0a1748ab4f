// Package ruletest holds a rule to what comments in its testdata want, as analysistest
// does, which takes five times as long: it type-checks the standard library from source
// and looks for retries there. This package reads export data, as forbear lint does. At
// night analysistest runs too.
package ruletest

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/lint/internal/retry"
)

// Run runs a rule on packages of testdata/src. A comment that begins with want holds
// patterns in back quotes, one for each finding of its line.
func Run(t *testing.T, rule *analysis.Analyzer, names ...string) {
	t.Helper()
	if ringtest.Nightly() {
		analysistest.Run(t, analysistest.TestData(), rule, names...)
	}
	for _, act := range analyze(t, rule, names).Roots {
		if act.Err != nil {
			t.Errorf("%v: %v", act, act.Err)
			continue
		}
		compare(t, act, wanted(t, act.Package))
	}
}

// Retries returns what the rules would read of packages of testdata/src, by their paths.
func Retries(t *testing.T, names ...string) map[string]*retry.Result {
	t.Helper()
	results := map[string]*retry.Result{}
	for _, act := range analyze(t, retry.Analyzer, names).Roots {
		if act.Err != nil {
			t.Fatalf("%v: %v", act, act.Err)
		}
		results[act.Package.PkgPath] = act.Result.(*retry.Result)
	}
	return results
}

// analyze runs an analyzer on packages of testdata/src.
func analyze(t *testing.T, a *analysis.Analyzer, names []string) *checker.Graph {
	t.Helper()
	gopath := analysistest.TestData()
	roots := Load(t, filepath.Join(gopath, "src"), "./...", "GOPATH="+gopath, "GO111MODULE=off")
	var asked []*packages.Package
	for _, name := range names {
		if roots[name] == nil {
			t.Fatalf("testdata has no package %s", name)
		}
		asked = append(asked, roots[name])
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{a}, asked, &checker.Options{SanityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// Load returns packages by their paths. All that the pattern names is checked from
// source, so that facts travel between them; what they import has none.
func Load(t *testing.T, dir, pattern string, env ...string) map[string]*packages.Package {
	t.Helper()
	const mode = packages.LoadImports | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo
	all, err := packages.Load(&packages.Config{
		Mode: mode, Dir: dir, Env: append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath"), env...),
	}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	roots := map[string]*packages.Package{}
	for _, p := range all {
		for _, fault := range p.Errors {
			t.Error(fault)
		}
		roots[p.PkgPath] = p
	}
	for _, p := range all {
		for path := range p.Imports {
			if roots[path] == nil {
				delete(p.Imports, path)
			}
		}
	}
	return roots
}

// want is a finding that a comment announces.
type want struct {
	at      string // file:line
	pattern *regexp.Regexp
}

var (
	comment = regexp.MustCompile("^//(?:.*//)? ?want((?: `[^`]*`)+)$")
	quoted  = regexp.MustCompile("`[^`]*`")
)

func wanted(t *testing.T, p *packages.Package) (list []want) {
	for _, f := range p.Syntax {
		for _, group := range f.Comments {
			for _, c := range group.List {
				found := comment.FindStringSubmatch(c.Text)
				if found == nil && strings.Contains(c.Text, "// want") {
					t.Errorf("%s: cannot read %s", line(p, c.Pos()), c.Text)
				}
				if found == nil {
					continue
				}
				for _, text := range quoted.FindAllString(found[1], -1) {
					list = append(list, want{line(p, c.Pos()), regexp.MustCompile(strings.Trim(text, "`"))})
				}
			}
		}
	}
	return list
}

func compare(t *testing.T, act *checker.Action, wants []want) {
	t.Helper()
	for _, d := range act.Diagnostics {
		at := line(act.Package, d.Pos)
		i := slices.IndexFunc(wants, func(w want) bool { return w.at == at && w.pattern.MatchString(d.Message) })
		if i < 0 {
			t.Errorf("%s: no comment wants: %s", at, d.Message)
			continue
		}
		wants = slices.Delete(wants, i, i+1)
	}
	for _, w := range wants {
		t.Errorf("%s: want %q", w.at, w.pattern)
	}
}

func line(p *packages.Package, pos token.Pos) string {
	posn := p.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", posn.Filename, posn.Line)
}
