package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/forbear-go/forbear"

// siblings are the imports that are allowed between packages of the root
// module beside the root package itself, which everyone may import. Arrows
// point downwards: a package that is not listed imports no sibling.
var siblings = map[string][]string{
	"gateway":     {"httpretry", "idempotency"},
	"webhook":     {"httpretry", "deadletter"},
	"consume":     {"deadletter", "idempotency"},
	"batch":       {"deadletter", "idempotency"},
	"console":     {"deadletter", "gateway", "idempotency", "webhook"}, // what its pages show
	"sqlstore":    {"deadletter", "idempotency", "webhook"},
	"storetest":   {"deadletter", "idempotency", "webhook"},
	"forrst":      {"httpretry"}, // its client sits on the HTTP transport
	"lattice":     {"httpretry"}, // so does the client under the SDKs
	"forbeartest": {},
	"site":        {"storm"}, // the simulator in a page
	"demo":        {"storm"}, // the first thing that a newcomer runs
}

// leaves are the packages below the root, which everyone may import. They know
// nothing of retries and import nothing but internal packages.
var leaves = []string{"breaker", "budget", "credential", "health", "pace", "reason"}

// file is one parsed Go file of the root module.
type file struct {
	path string // slash-separated, from the module's root
	test bool
	ast  *ast.File
}

// folder returns the top folder of the file's package, "" for the root.
func (f *file) folder() string {
	dir := path.Dir(f.path)
	if dir == "." {
		return ""
	}
	top, _, _ := strings.Cut(dir, "/")
	return top
}

func (f *file) imports(t *testing.T) (paths []string) {
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// rootModule parses the Go files of the root module: nested modules, which
// carry their own dependencies, and testdata are left out.
func rootModule(t *testing.T) []*file {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var files []*file
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == root {
				return nil
			}
			if strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		// The programs of the guides are tests of the guides, and a suite is one of its users'.
		test := strings.HasSuffix(name, "_test.go") || strings.Contains(rel, "/internal/guide/") || strings.HasPrefix(rel, "edge/partial/")
		files = append(files, &file{rel, test, parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("found only %d files below %s", len(files), root)
	}
	return files
}

// own cuts an import of the module down to its folder; ok is false for others.
func own(imported string) (folder string, ok bool) {
	if imported == module {
		return "", true
	}
	rest, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return "", false
	}
	top, _, _ := strings.Cut(rest, "/")
	return top, true
}

// standard reports whether an import path is of the standard library: its first
// element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// forbidden returns why a file in folder may not import a path, or "".
func forbidden(folder, imported string, test bool) string {
	target, ok := own(imported)
	switch {
	case !ok && !standard(imported):
		return "the root module imports the standard library only, tests included: a package that needs more lives in a module of its own, so that no one pays for a dependency without use"
	case strings.HasPrefix(imported, module+"/internal/testkit") && !test && folder != "internal" && folder != "storetest" && folder != "forbeartest":
		return "internal/testkit is for tests: a product that imports it carries test servers"
	case !ok || target == folder || target == "internal":
		return ""
	case imported == module+"/webhook/dispatch" && !test:
		return "the dispatcher is for binaries: stores and their suites need package webhook alone"
	case slices.Contains(leaves, folder) && !test:
		return "a leaf imports internal packages only: the root is made of leaves, not the other way round"
	case folder == "internal" && !test:
		return "internal packages are the ground, and know nothing of forbear: what speaks of its calls and failures is below edge"
	case target == "" && folder != "", slices.Contains(leaves, target):
		return ""
	case target == "edge" && (folder != "" || test): // the root's other half, for those who write an edge
		return ""
	case test && target == "forbeartest":
		return ""
	case folder == "":
		if test {
			return "the root's tests need nothing above the root but forbeartest"
		}
		return "the root package is the lowest: everything else imports it, and an import upwards is a cycle in the design"
	case slices.Contains(siblings[folder], target):
		return ""
	case test:
		return "" // a test may put siblings together
	}
	return "siblings do not import each other, unless the layout says so: see the table in this file"
}

func TestImports(t *testing.T) {
	for _, f := range rootModule(t) {
		for _, imported := range f.imports(t) {
			if why := forbidden(f.folder(), imported, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
}

// A permission that nothing uses is a door left open.
func TestSiblingsAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, f := range rootModule(t) {
		for _, imported := range f.imports(t) {
			if target, ok := own(imported); ok && !f.test {
				used[f.folder()+" -> "+target] = true
			}
		}
	}
	for folder, targets := range siblings {
		for _, target := range targets {
			if !used[folder+" -> "+target] {
				t.Errorf("nothing in %s imports %s: take the permission away", folder, target)
			}
		}
	}
}

// The rules themselves, so that a hole in them is seen.
func TestForbidden(t *testing.T) {
	for _, tt := range []struct {
		folder, imported string
		test, refused    bool
	}{
		{"", "time", false, false},
		{"", "golang.org/x/time/rate", false, true},
		{"", "github.com/stretchr/testify/assert", true, true},
		{"", module + "/internal/window", false, false},
		{"", module + "/internal/testkit/race", false, true},
		{"", module + "/internal/testkit/race", true, false},
		{"", module + "/httpretry", false, true},
		{"", module + "/httpretry", true, true},
		{"", module + "/forbeartest", true, false},
		{"", module + "/forbeartest", false, true},
		{"httpretry", module, false, false},
		{"", module + "/budget", false, false},
		{"", module + "/reason", false, false},
		{"", module + "/edge", false, true},
		{"", module + "/edge", true, false},
		{"consume", module + "/edge", false, false},
		{"reason", module + "/edge", false, true},
		{"webhook", module + "/breaker", false, false},
		{"budget", module, false, true},
		{"budget", module + "/breaker", false, true},
		{"breaker", module + "/internal/window", false, false},
		{"httpretry", module + "/gateway", false, true},
		{"httpretry", module + "/forrst", false, true},
		{"gateway", module + "/httpretry", false, false},
		{"deadletter", module + "/webhook", false, true},
		{"sqlstore", module + "/webhook", false, false},
		{"sqlstore", module + "/webhook/dispatch", false, true},
		{"internal", module, false, true},
		{"internal", module + "/breaker", false, true},
		{"internal", module + "/httpretry", false, true},
		{"httpretry", module + "/policyfile", false, true},
	} {
		if why := forbidden(tt.folder, tt.imported, tt.test); (why != "") != tt.refused {
			t.Errorf("%q imports %s (test %v): %q, want refused = %v", tt.folder, tt.imported, tt.test, why, tt.refused)
		}
	}
}

// waits are the ways to wait that the standard library has.
var waits = map[string]bool{
	"Sleep": true, "After": true, "AfterFunc": true, "NewTimer": true, "NewTicker": true, "Tick": true,
}

// sleepers lists the calls in a file that wait by themselves.
func sleepers(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" && pkg.Obj == nil && waits[sel.Sel.Name] {
			found = append(found, "time."+sel.Sel.Name)
		}
		return true
	})
	return found
}

func TestOneFileSleeps(t *testing.T) {
	seen := false
	for _, f := range rootModule(t) {
		if f.folder() != "" || f.test {
			continue
		}
		found := sleepers(f.ast)
		if f.path == "wait.go" {
			seen = len(found) > 0
			continue
		}
		for _, call := range found {
			t.Errorf("%s calls %s: exactly one file of the package waits, wait.go; everything else takes the time as an argument", f.path, call)
		}
	}
	if !seen {
		t.Error("wait.go does not wait: has the waiting moved?")
	}
}

func TestSleepersFindsThem(t *testing.T) {
	src := `package p
import "time"
func f() { time.Sleep(1); <-time.After(1); t := time.NewTimer; _ = t; _ = time.Second }`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := sleepers(f); !slices.Equal(got, []string{"time.Sleep", "time.After", "time.NewTimer"}) {
		t.Errorf("got %v", got)
	}
}
