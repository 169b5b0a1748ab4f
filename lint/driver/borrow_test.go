package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// helperModules are a module that retries through a helper of another one, which
// no table knows, and a third one that has none.
func helperModules() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n\nrequire (\n\texample.com/helper v0.0.0\n\texample.com/plain v0.0.0\n)\n\n" +
			"replace (\n\texample.com/helper => ./helper\n\texample.com/plain => ./plain\n)\n",
		"m.go": `package m

import (
	"net/http"
	"time"

	"example.com/helper/again"
	"example.com/plain"
)

func Fetch(url string) error {
	plain.Note(url)
	return again.Retry(3, time.Second, func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}
`,
		"helper/go.mod": "module example.com/helper\n\ngo 1.26\n",
		"helper/again/again.go": `package again

import (
	"time"

	"example.com/helper/pause"
)

func Retry(attempts int, every time.Duration, op func() error) (err error) {
	for range attempts {
		if err = op(); err == nil {
			return nil
		}
		pause.Rest(every)
	}
	return err
}
`,
		"helper/pause/pause.go": "package pause\n\nimport \"time\"\n\nfunc Rest(d time.Duration) { time.Sleep(d) }\n",
		"plain/go.mod":          "module example.com/plain\n\ngo 1.26\n",
		"plain/plain.go":        "package plain\n\nfunc Note(string) {}\n",
	}
}

// TestHelpersOfOtherModules: what a helper of another module does is read from
// its code, and it is not judged itself.
func TestHelpersOfOtherModules(t *testing.T) {
	dir := module(t, helperModules())
	code, out, errs := lintIn(t, dir, "./...")
	if code != ExitFindings || !strings.Contains(out, "retries through again.Retry, which waits the same time after every failure") {
		t.Errorf("got exit %d, want a finding at the call of the helper:\n%s%s", code, out, errs)
	}
	if strings.Contains(out, "again.go") {
		t.Errorf("the helper itself is judged:\n%s", out)
	}
}

// TestBorrowLimits: a helper comes before a large module that also speaks of
// retries, and of what a helper leans on only a few packages are read.
func TestBorrowLimits(t *testing.T) {
	of := func(path string, imports ...*packages.Package) *packages.Package {
		file := filepath.Join(t.TempDir(), "backoff.go")
		if err := os.WriteFile(file, []byte("package p\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		module, _, _ := strings.Cut(path, "/")
		p := &packages.Package{PkgPath: path, Module: &packages.Module{Path: module}, CompiledGoFiles: []string{file}, Imports: map[string]*packages.Package{}}
		for _, i := range imports {
			p.Imports[i.PkgPath] = i
		}
		return p
	}
	var parts []*packages.Package
	for n := range 2 * maxBorrowed {
		parts = append(parts, of(fmt.Sprintf("big.example/part%d", n)))
	}
	helper := of("small.example/retry")
	got := borrow([]*packages.Package{of("m.example/m", of("big.example/client", parts...), helper)})
	if !got[helper] || len(got) != 2+maxLeant {
		t.Errorf("got %d packages, the helper %v; want it, and %d in all", len(got), got[helper], 2+maxLeant)
	}
}

// TestBorrow: of other modules, only what holds a retry helper, and what that
// needs of its own module, is read from source.
func TestBorrow(t *testing.T) {
	dir := module(t, helperModules())
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	l, err := load(t.Context(), dir, "", []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := range l.borrowed {
		got = append(got, p.PkgPath)
	}
	slices.Sort(got)
	if want := []string{"example.com/helper/again", "example.com/helper/pause"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if i := slices.IndexFunc(l.order, func(p *packages.Package) bool { return l.isRoot(p) }); i != 2 {
		t.Errorf("the package that was asked for is number %d, want 2: after the helpers", i)
	}
}
