package rule

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Directive is a comment that suppresses findings:
//
//	//forbear:ignore FB1001 the vendor asks for exactly 5 s
//	//nolint:forbear // the vendor asks for exactly 5 s
//
// A directive without a reason suppresses nothing: the next reader must be able
// to judge whether it still holds.
type Directive struct {
	Pos, End token.Pos
	Rules    []string // nil means all (nolint)
	Reason   string
	Waiver   string // of //forbear:waive
	Nolint   bool
	Used     bool

	file       string
	line       int       // of the directive
	from, to   token.Pos // of the statement or declaration that it covers
	wholeScope bool      // on a func or package clause
}

// DirectiveSet holds the directives of a package.
// The analyzers of one package share it, one after the other; it is not safe for
// concurrent use.
type DirectiveSet struct{ All []*Directive }

// Directives collects the directives of a package.
// It is an analyzer of its own so that all rules mark what they use in one set.
var Directives = &analysis.Analyzer{
	Name:       "forbeardirectives",
	Doc:        "collect directives that suppress findings of forbear",
	ResultType: reflect.TypeFor[*DirectiveSet](),
	Run: func(pass *analysis.Pass) (any, error) {
		set := &DirectiveSet{}
		for _, f := range pass.Files {
			for _, g := range f.Comments {
				for _, c := range g.List {
					if d := parse(c); d != nil {
						d.place(pass.Fset, f)
						set.All = append(set.All, d)
					}
				}
			}
		}
		return set, nil
	},
}

var (
	// nolintRE is the form of golangci-lint, with the reason behind a second //.
	nolintRE = regexp.MustCompile(`^//\s?nolint:([\w,-]+)\s*(?://\s*(.*))?$`)
	ruleRE   = regexp.MustCompile(`^FB\d{4}(,FB\d{4})*$`)
)

// parse reads one comment; nil when it is no directive of forbear's.
// The space before forbear:ignore is not allowed, as in all directives of Go.
// Without a rule, the directive names the rule "", which is unknown and is
// reported.
func parse(c *ast.Comment) *Directive {
	d := &Directive{Pos: c.Pos(), End: c.End()}
	if rest, ok := strings.CutPrefix(c.Text, "//forbear:ignore"); ok {
		// Tests of analyzers put what they expect on the same line.
		rest, _, _ = strings.Cut(rest, " // want")
		fields := strings.Fields(rest)
		if len(fields) > 0 {
			d.Rules = strings.Split(fields[0], ",")
			d.Reason = strings.Join(fields[1:], " ")
		} else {
			d.Rules = []string{""}
		}
		return d
	}
	m := nolintRE.FindStringSubmatch(c.Text)
	if m == nil {
		return nil
	}
	for name := range strings.SplitSeq(m[1], ",") {
		lower := strings.ToLower(name)
		if lower == "forbear" {
			d.Nolint, d.Reason = true, m[2]
			return d
		}
		if ruleRE.MatchString(strings.ToUpper(name)) {
			d.Nolint, d.Reason = true, m[2]
			d.Rules = append(d.Rules, strings.ToUpper(name))
		}
	}
	if d.Nolint {
		return d
	}
	return nil
}

// place finds what the directive covers: its own line and the statement that
// begins on it or on the next line; for a directive on a function or the
// package clause, all of it.
// A directive in the doc comment of a function covers the function.
func (d *Directive) place(fset *token.FileSet, f *ast.File) {
	at := fset.Position(d.Pos)
	d.file, d.line = at.Filename, at.Line
	if fset.Position(f.Package).Line == at.Line || d.in(f.Doc) {
		d.from, d.to, d.wholeScope = f.FileStart, f.FileEnd, true
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if d.in(n.Doc) || fset.Position(n.Pos()).Line == at.Line {
				d.from, d.to, d.wholeScope = n.Pos(), n.End(), true
				return false
			}
		case ast.Stmt:
			if line := fset.Position(n.Pos()).Line; d.from == 0 && (line == at.Line+1 || line == at.Line) {
				if _, isBlock := n.(*ast.BlockStmt); !isBlock {
					d.from, d.to = n.Pos(), n.End()
				}
			}
		}
		return true
	})
}

// in reports whether the directive is one of a group of comments, which may be nil.
func (d *Directive) in(g *ast.CommentGroup) bool {
	return g != nil && g.Pos() <= d.Pos && d.Pos < g.End()
}

// advisory lists the rules that a directive may suppress for a whole function
// or file; for the merge-blocking ones it must stand at the place itself.
// A wide suppression of those would hide the next bug in the same function too.
var advisory = map[string]bool{
	"FB1003": true, "FB1010": true, "FB1011": true, "FB1012": true, "FB1040": true, "FB1052": true, "FB1053": true, "FB1054": true, "FB1055": true, "FB1020": true,
}

// match returns the directive that suppresses f, and marks it as used.
// It is called for weak and disabled findings as well, so that their directives
// do not pass for unused.
func (s *DirectiveSet) match(fset *token.FileSet, f *Finding) *Directive {
	at := fset.Position(f.Pos)
	for _, d := range s.All {
		if at.Filename != d.file || d.Reason == "" || !d.names(f.Rule) {
			continue
		}
		onLine := at.Line == d.line || at.Line == d.line+1
		inside := d.from <= f.Pos && f.Pos < d.to
		if onLine || inside && (!d.wholeScope || advisory[f.Rule]) {
			d.Used = true
			return d
		}
	}
	return nil
}

// names reports whether the directive is about a rule.
// A nolint of forbear as a whole names every rule.
func (d *Directive) names(rule string) bool {
	return d.Rules == nil || slices.Contains(d.Rules, rule)
}
