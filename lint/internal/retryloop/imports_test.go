package retryloop

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImports holds the direction in which the packages behind the region
// finder know each other. A verdict that asks another one for its opinion makes
// a knot: what both need belongs below them, in dataflow or in fact.
func TestImports(t *testing.T) {
	const own = "github.com/forbear-go/forbear/lint/internal/"
	below := map[string][]string{
		"dataflow":  nil,
		"codeset":   nil,
		"fact":      {"dataflow", "codeset"},
		"bound":     {"dataflow", "fact"},
		"delay":     {"dataflow", "fact"},
		"send":      {"dataflow", "fact", "config"}, // config names the headers of keys
		"status":    {"dataflow", "fact", "codeset"},
		"retryloop": {"dataflow", "fact", "codeset", "bound", "delay", "send", "status"},
	}
	for pkg, allowed := range below {
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("package %s has no files: %v", pkg, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				if imported, ok := strings.CutPrefix(path, own); ok && !slices.Contains(allowed, imported) {
					t.Errorf("%s imports %s, which is not below it: it may import %v", name, imported, allowed)
				}
			}
		}
	}
}
