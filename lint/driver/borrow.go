package driver

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Limits on what is read of other modules. A module imports a handful of retry
// helpers at most; the limits keep one that imports half of a cloud's clients
// as fast as any other.
const (
	maxBorrowed     = 48       // packages
	maxLeant        = 6        // packages that one helper leans on
	maxNamedBytes   = 1 << 20  // of source, for a package that is named for retries
	maxSpokenBytes  = 1 << 18  // of source, for one that only declares something of that name
	maxScannedBytes = 16 << 20 // of source in all that is searched for such declarations
)

var (
	// retryPath marks import paths and files that are named for retries.
	retryPath = regexp.MustCompile(`(?i)retr(y|ie)|backoff|attempt|resilien|failsafe|(^|[/_.-])try([/_.-]|$)`)
	// retryDecl marks exported functions and methods that are.
	retryDecl = regexp.MustCompile(`(?m)^func (\([^)]*\) )?([A-Z]\w*)?(Retr(y|ie)|Back[oO]ff|Attempt)\w*[\[(]`)
)

// borrow picks the packages of other modules that are read from source for their
// facts: the retry helpers among what the packages of own import, and what those
// need of their own module or of another helper. A helper says by its code which
// parameter it calls again, how it waits and which errors end it, so that no
// table has to know it.
func borrow(own []*packages.Package) map[*packages.Package]bool {
	b := borrower{own: map[*packages.Package]bool{}, asked: map[*packages.Package]bool{}, picked: map[*packages.Package]bool{}, left: maxScannedBytes}
	for _, p := range own {
		b.own[p] = true
	}
	// Those that are named for retries come first, and what they lean on last, so
	// that the limit cuts off what says least.
	var helpers []*packages.Package
	for _, ask := range []func(*packages.Package) bool{named, b.speaks} {
		for _, p := range own {
			for _, path := range sortedImports(p) {
				if dep := p.Imports[path]; b.foreign(dep) && sizeOf(dep) <= maxNamedBytes && ask(dep) && len(b.picked) < maxBorrowed {
					b.picked[dep] = true
					helpers = append(helpers, dep)
				}
			}
		}
	}
	for _, p := range helpers {
		b.lean(p, maxLeant)
	}
	return b.picked
}

// borrower holds what has been picked, and how much may still be searched.
type borrower struct {
	own, asked, picked map[*packages.Package]bool
	left               int64
}

// sortedImports gives the imports an order, so that the limits cut off the same
// ones in each run.
func sortedImports(p *packages.Package) []string {
	var paths []string
	for path := range p.Imports {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// foreign reports whether a package may be read from source for its facts: it
// belongs to another module, as those of the standard library do not, and it
// compiles.
func (b *borrower) foreign(p *packages.Package) bool {
	return p.Module != nil && len(p.CompiledGoFiles) > 0 && len(p.Errors) == 0 && !b.own[p] && !b.picked[p]
}

// lean picks what the functions of a helper lean on, up to a number of packages:
// other packages of its module, which are small, and other helpers. It returns
// how many more may be picked.
func (b *borrower) lean(p *packages.Package, left int) int {
	for _, path := range sortedImports(p) {
		dep := p.Imports[path]
		if left == 0 || len(b.picked) >= maxBorrowed {
			break
		}
		size := sizeOf(dep)
		if b.foreign(dep) && (named(dep) && size <= maxNamedBytes || dep.Module.Path == p.Module.Path && size <= maxSpokenBytes/4) {
			b.picked[dep] = true
			left = b.lean(dep, left-1)
		}
	}
	return left
}

// named reports whether the path of a package is named for retries.
func named(p *packages.Package) bool { return retryPath.MatchString(p.PkgPath) }

// speaks reports whether a package holds a retry helper or a backoff, as far as
// the names of its files and functions tell. Each package is asked once.
func (b *borrower) speaks(p *packages.Package) bool {
	size := sizeOf(p)
	if b.asked[p] || size > maxSpokenBytes || size > b.left {
		return false
	}
	b.asked[p] = true
	b.left -= size
	return slices.ContainsFunc(p.CompiledGoFiles, func(name string) bool {
		if retryPath.MatchString(strings.TrimSuffix(filepath.Base(name), ".go")) {
			return true
		}
		src, err := os.ReadFile(name)
		return err == nil && retryDecl.Match(src)
	})
}

// sizeOf is the size of a package's source, or more than any limit when it
// cannot be read.
func sizeOf(p *packages.Package) (size int64) {
	for _, name := range p.CompiledGoFiles {
		st, err := os.Stat(name)
		if err != nil {
			return 1 << 62
		}
		size += st.Size()
	}
	return size
}
