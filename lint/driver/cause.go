package driver

import (
	"slices"

	"github.com/forbear-go/forbear/internal/report"
)

// fold makes one finding of those that have one cause: what a rule has found
// within the finding of another becomes a related place of that one.
// One mend does for both, so that they count once. Identities come before it, so
// that a baseline knows either. A finding whose principal is not shown stays.
func fold(found []*finding) []*finding {
	type key struct {
		rule, file   string
		line, column int
	}
	principals := map[key]*finding{}
	for _, f := range found {
		if f.within == "" && f.Suppressed == "" {
			principals[key{f.ID, f.File, f.Line, f.Column}] = f
		}
	}
	return slices.DeleteFunc(found, func(f *finding) bool {
		p := principals[key{f.within, f.File, f.Line, f.Column}]
		if f.within == "" || p == nil {
			return false
		}
		p.Related = append(slices.Clip(p.Related), report.Place{
			File: f.File, Line: f.Line, Column: f.Column, EndLine: f.EndLine, EndColumn: f.EndColumn,
			Message: f.ID + " too: " + f.Message,
		})
		p.Fixes = append(slices.Clip(p.Fixes), f.Fixes...)
		return true
	})
}
