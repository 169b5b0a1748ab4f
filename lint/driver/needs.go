package driver

import (
	"cmp"
	"slices"

	"golang.org/x/tools/go/packages"
)

// needs holds, for each package that is judged, those of the others whose facts
// it may ask for: its imports, and what it reaches through packages that are
// not judged.
type needs map[*packages.Package][]*packages.Package

// needsOf gathers them, in the order of their paths.
// A package of another module seldom imports one of these; in a workspace it
// may, and then its types lead to functions of a package that the importer does
// not name.
func needsOf(roots, judged []*packages.Package) needs {
	own := map[*packages.Package]bool{}
	for _, p := range judged {
		own[p] = true
	}
	below := needs{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		set := map[*packages.Package]bool{}
		for _, dep := range p.Imports {
			if own[dep] {
				set[dep] = true
				continue
			}
			for _, q := range below[dep] {
				set[q] = true
			}
		}
		for q := range set {
			below[p] = append(below[p], q)
		}
		slices.SortFunc(below[p], func(a, b *packages.Package) int { return cmp.Compare(a.ID, b.ID) })
	})
	return below
}
