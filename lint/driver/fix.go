package driver

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"os"
	"slices"
)

// applyFixes applies the first fix of every finding that has one and is not
// suppressed, and returns how many it applied. Edits that overlap an applied
// one are left for the next run.
func applyFixes(found []*Finding) (int, error) {
	byFile := map[string][]Edit{}
	applied := 0
	for _, f := range found {
		if f.Suppressed != "" || len(f.Fixes) == 0 {
			continue
		}
		if fits(byFile, f.Fixes[0].Edits) {
			applied++
			for _, e := range f.Fixes[0].Edits {
				if !slices.ContainsFunc(byFile[e.abs], e.same) {
					byFile[e.abs] = append(byFile[e.abs], e)
				}
			}
		}
	}
	for name, edits := range byFile {
		if err := rewrite(name, edits); err != nil {
			return 0, err
		}
	}
	return applied, nil
}

func (e Edit) same(o Edit) bool {
	return e.Start == o.Start && e.End == o.End && e.NewText == o.NewText
}

// fits reports whether no edit overlaps one that was taken already; the same
// edit twice (an import) is no overlap.
func fits(taken map[string][]Edit, edits []Edit) bool {
	for _, e := range edits {
		for _, o := range taken[e.abs] {
			if !e.same(o) && e.Start < o.End && o.Start < e.End {
				return false
			}
		}
	}
	return true
}

func rewrite(name string, edits []Edit) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End > len(src) {
			return fmt.Errorf("fix %s: edit at byte %d does not fit the file", name, e.Start)
		}
		out.Write(src[at:e.Start])
		out.WriteString(e.NewText)
		at = e.End
	}
	out.Write(src[at:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return fmt.Errorf("fix %s: %w", name, err)
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, formatted, st.Mode().Perm())
}
