// Package rule holds what all analyzers share: the documentation value from
// which docs and --explain are made, findings with their confidence, and the
// directives that suppress them.
package rule

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/retry"
)

// Confidence says how sure a finding is. Only High fails a build by default.
type Confidence int

const (
	Low    Confidence = iota // shown on demand only
	Medium                   // a warning
	High                     // blocks a merge
)

// String returns the name by which settings and reports know it.
func (c Confidence) String() string { return [...]string{"low", "medium", "high"}[c] }

// Sure is the confidence of a finding that blocks a merge, unless something speaks
// against it: then it is a warning.
func Sure(certain bool) Confidence {
	if certain {
		return High
	}
	return Medium
}

// ParseConfidence reads the name of a confidence.
// Names are in lower case, and no other spelling is accepted.
func ParseConfidence(s string) (Confidence, error) {
	for c := Low; c <= High; c++ {
		if c.String() == s {
			return c, nil
		}
	}
	return Low, fmt.Errorf("confidence %q is unknown: want low, medium or high", s)
}

// Least returns the least confidence that counts by the settings: high, when
// they say nothing.
func Least(s *config.Settings) (Confidence, error) {
	if s.Confidence == "" {
		return High, nil
	}
	return ParseConfidence(s.Confidence)
}

// Doc documents one rule.
// RULES.md, SARIF and --explain are made from it.
type Doc struct {
	ID       string // "FB1001"
	Name     string // "FixedInterval"
	Title    string // one line, without a full stop
	Remedy   string // what to do, one line of at most 90 characters, without a full stop
	Text     string // why it matters, what is and what is not reported
	Bad      string // Go code that is reported
	Good     string // the same, mended
	Standard string // the standard's rule, "R-1"
}

// Finding is one report of a rule.
// Function and Callees are part of its identity across edits, so that they must
// not hold line numbers.
type Finding struct {
	Rule       string
	Confidence Confidence
	Pos, End   token.Pos
	Message    string // without the rule's identifier
	Function   string // the enclosing function
	Callees    []string
	Related    []analysis.RelatedInformation
	Evidence   []Evidence // what it rests on, for those who ask
	Fixes      []analysis.SuggestedFix
	Suppressed *Directive // nil when it stands
	// Waived is the waiver that lifts it; nil when it stands.
	Waived *config.Waiver
	// Standard is the standard's rule, where it is not the one of the
	// documentation: certificates, which cannot be waived.
	Standard string
	// Within is the rule whose finding at the same position says what is to be
	// mended there, this one included; "" for a finding of its own.
	Within string
}

// Findings is the result of every analyzer: all findings, suppressed and weak
// ones included, for drivers that show them.
type Findings []*Finding

// Pass is what a rule's check works on.
// It lives for one rule and one package.
type Pass struct {
	*analysis.Pass
	*retry.Result
	doc   *Doc
	found Findings
	more  Findings // of rules that say more about the same causes
}

// New makes the analyzer of a rule.
// The check only reports; directives, waivers and the least confidence are
// applied here, so that no rule can forget one.
// The findings of the analyzers that are named after it say more about the same
// cause: a finding at the position of one of theirs is within that one.
func New(doc *Doc, check func(*Pass), after ...*analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:       strings.ToLower(doc.ID),
		Doc:        doc.ID + ": " + doc.Title + "\n\n" + doc.Text,
		URL:        "https://github.com/forbear-go/forbear/blob/main/lint/RULES.md#" + strings.ToLower(doc.ID),
		Requires:   append([]*analysis.Analyzer{retry.Analyzer, Directives}, after...),
		ResultType: reflect.TypeFor[Findings](),
		Run: func(pass *analysis.Pass) (any, error) {
			p := &Pass{Pass: pass, Result: pass.ResultOf[retry.Analyzer].(*retry.Result), doc: doc}
			p.Turn.Lock()
			// After a panic too: golangci-lint goes on with the other rules.
			defer p.Turn.Unlock()
			check(p)
			for _, a := range after {
				p.more = append(p.more, pass.ResultOf[a].(Findings)...)
			}
			p.flush(pass.ResultOf[Directives].(*DirectiveSet))
			return p.found, nil
		},
	}
}

// Report adds a finding, unless it lies where nothing is judged: tests,
// testdata, generated files, examples.
// In tools and test support nothing blocks a merge, so high confidence becomes
// medium. A rule says one thing of a place: the first that is found, or the
// surest.
func (p *Pass) Report(f Finding) {
	if !p.Judges(f.Pos) {
		return
	}
	f.Rule = p.doc.ID
	if !f.End.IsValid() {
		f.End = f.Pos
	}
	if f.Function == "" {
		f.Function = p.enclosing(f.Pos)
	}
	if p.tool(f.Pos) && f.Confidence == High {
		f.Confidence = Medium
	}
	for i, o := range p.found {
		if o.Pos == f.Pos {
			if o.Confidence < f.Confidence {
				p.found[i] = &f
			}
			return
		}
	}
	p.found = append(p.found, &f)
}

// ReportAt reports a finding at an instruction, in the name of its function.
func (p *Pass) ReportAt(in ssa.Instruction, c Confidence, message string, callees ...string) {
	p.Report(Finding{Confidence: c, Pos: in.Pos(), Function: FunctionName(in.Parent()), Message: message, Callees: callees})
}

// ReportNode reports a finding that underlines a piece of the source.
func (p *Pass) ReportNode(n ast.Node, c Confidence, message string) {
	p.Report(Finding{Confidence: c, Pos: n.Pos(), End: n.End(), Message: message})
}

// ReportRetry reports a finding at the keyword of a retry, with the operation and the
// waits as related places. One retry has at most one finding of a rule.
func (p *Pass) ReportRetry(r *retry.Retry, c Confidence, message string, fixes ...analysis.SuggestedFix) {
	p.Report(RetryFinding(r, c, message, fixes...))
}

// RetryFinding is what ReportRetry reports. Rules that must change a field of it
// before it is reported call it themselves.
func RetryFinding(r *retry.Retry, c Confidence, message string, fixes ...analysis.SuggestedFix) Finding {
	f := Finding{Confidence: c, Pos: r.Pos, End: keywordEnd(r), Message: message, Fixes: fixes, Function: FunctionName(r.Fn), Callees: r.Callees(), Evidence: Terms(r)}
	for _, op := range r.Ops {
		f.Related = append(f.Related, analysis.RelatedInformation{Pos: op.Pos(), Message: "the call that is retried: " + retry.Describe(op.Common())})
	}
	for _, w := range r.Waits {
		if w.Pos().IsValid() {
			f.Related = append(f.Related, analysis.RelatedInformation{Pos: w.Pos(), Message: "the wait between attempts"})
		}
	}
	return f
}

// keywordEnd is the end of the keyword that a finding underlines: for, or nothing for a
// recursion.
func keywordEnd(r *retry.Retry) token.Pos {
	if r.Node == nil {
		return r.Pos
	}
	return r.Pos + token.Pos(len("for"))
}

// FunctionName names a function for fingerprints and people: "(*T).M", "F",
// "F.func1".
func FunctionName(fn *ssa.Function) string {
	if fn.Parent() != nil {
		return FunctionName(fn.Parent()) + ".func"
	}
	return fn.RelString(fn.Package().Pkg)
}

// enclosing names the declaration around pos.
func (p *Pass) enclosing(pos token.Pos) string {
	f := p.FileAt(pos)
	if f == nil {
		return ""
	}
	for _, d := range f.Decls {
		fd, ok := d.(*ast.FuncDecl)
		if ok && fd.Pos() <= pos && pos < fd.End() {
			if fd.Recv == nil {
				return fd.Name.Name
			}
			return "method " + fd.Name.Name
		}
	}
	return ""
}

// FileAt returns the file that pos lies in, or nil.
func (p *Pass) FileAt(pos token.Pos) *ast.File {
	if i := slices.IndexFunc(p.Files, func(f *ast.File) bool { return f.FileStart <= pos && pos < f.FileEnd }); i >= 0 {
		return p.Files[i]
	}
	return nil
}

// Judges reports whether a finding at pos counts. A rule that reports one of
// several places asks before it chooses.
func (p *Pass) Judges(pos token.Pos) bool { return pos.IsValid() && !p.exempt(pos) }

// exempt reports whether nothing is judged at pos: in tests, in examples, in
// files that a program has made. Retries there serve another purpose, or are
// mended elsewhere.
func (p *Pass) exempt(pos token.Pos) bool {
	// A line directive may name any file, but those of cgo name the one that was
	// written.
	f := p.FileAt(pos)
	at := p.Fset.PositionFor(pos, f != nil && cgo(f))
	name := filepath.ToSlash(at.Filename)
	if strings.HasSuffix(name, "_test.go") {
		return true
	}
	for _, dir := range []string{"/examples/", "/example/", "/_examples/"} {
		if strings.Contains(name, dir) && strings.Contains(p.Pkg.Path()+"/", dir) {
			return true
		}
	}
	return f != nil && generated(f)
}

// cgoHeader is how files begin that cgo has made of others.
const cgoHeader = "// Code generated by cmd/cgo;"

// cgo reports whether cgo has made a file of one that was written by hand.
func cgo(f *ast.File) bool {
	return slices.ContainsFunc(f.Comments, func(g *ast.CommentGroup) bool {
		return g.Pos() < f.Package && strings.HasPrefix(g.List[0].Text, cgoHeader)
	})
}

// generated reports whether a file is made by a program. What cgo makes of a
// file that was written by hand is not.
func generated(f *ast.File) bool {
	if !ast.IsGenerated(f) {
		return false
	}
	for _, g := range f.Comments {
		for _, c := range g.List {
			if c.Pos() > f.Package {
				return false
			}
			if strings.HasPrefix(c.Text, "// Code generated ") && strings.HasSuffix(c.Text, " DO NOT EDIT.") && !strings.HasPrefix(c.Text, cgoHeader) {
				return true
			}
		}
	}
	return false
}

// tool reports whether pos lies in a development tool.
func (p *Pass) tool(pos token.Pos) bool {
	if p.Imports("testing") {
		return true
	}
	module := ""
	if p.Module != nil {
		module = p.Module.Path
	}
	path := "/" + folders(p.Pkg.Path(), module) + "/"
	for _, dir := range []string{"/hack/", "/e2e/", "/integration/", "/mock"} {
		if strings.Contains(path, dir) {
			return true
		}
	}
	for elem := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(elem, "test") || strings.HasSuffix(elem, "test") || strings.HasSuffix(elem, "tests") {
			return true
		}
	}
	return false
}

// folders is what of a package's path names folders: a repository that is named
// for tests, as the home of a test server may be, holds a product like any other.
// A module below its repository's root is a folder too.
func folders(pkg, module string) string {
	rest, ok := strings.CutPrefix(pkg+"/", module+"/")
	if module == "" || !ok {
		return pkg
	}
	parts := strings.Split(module, "/")
	return strings.Trim(strings.Join(append(parts[min(len(parts), 3):], rest), "/"), "/")
}

// Imports reports whether the package imports the one of the given path.
func (p *Pass) Imports(path string) bool {
	return slices.ContainsFunc(p.Pkg.Imports(), func(imp *types.Package) bool { return imp.Path() == path })
}

// flush applies the directives and hands what stands to the driver.
// Only what is sure enough becomes a diagnostic, since go vet and golangci-lint
// fail on any of them.
func (p *Pass) flush(dirs *DirectiveSet) {
	settings := config.Current()
	if settings.Disabled(p.doc.ID) {
		// The directives for it are not without effect: it is switched off.
		for _, f := range p.found {
			dirs.match(p.Fset, f)
		}
		p.found = nil
	}
	least, err := Least(settings)
	if err != nil {
		least = High // Apply has refused such settings
	}
	for _, f := range p.found {
		f.Suppressed = dirs.match(p.Fset, f)
		if f.Suppressed == nil {
			f.Waived = settings.Lift(p.Place(f.Pos), p.rules(f)...)
		}
		f.Within = p.within(f)
		if f.Suppressed != nil || f.Waived != nil || f.Within != "" || f.Confidence < least {
			continue
		}
		p.Pass.Report(analysis.Diagnostic{
			Pos: f.Pos, End: f.End, Category: f.Rule,
			Message: f.Rule + ": " + f.Message, Related: f.Related, SuggestedFixes: f.Fixes,
		})
	}
}

// within returns the rule that has reported the cause of f already, or "".
// A finding that is suppressed says nothing of the cause, and neither does one
// that is less sure. A suppressed f keeps to itself, with its reason.
func (p *Pass) within(f *Finding) string {
	if f.Suppressed != nil || f.Waived != nil {
		return ""
	}
	for _, o := range p.more {
		if o.Pos == f.Pos && o.Suppressed == nil && o.Waived == nil && o.Confidence >= f.Confidence {
			return cmp.Or(o.Within, o.Rule)
		}
	}
	return ""
}

// Place is the file at pos, as settings know it.
func (p *Pass) Place(pos token.Pos) config.Place {
	at := config.Place{Package: p.Pkg.Path(), File: p.Fset.PositionFor(pos, false).Filename}
	if p.Module != nil {
		at.Module = p.Module.Path
	}
	return at
}

// Limits returns the limits that hold at pos, and the dependency whose they
// are, or "".
func (p *Pass) Limits(pos token.Pos) (config.Limits, string) {
	return config.Current().For(p.Place(pos))
}

// rules lists the rules under which a waiver may lift f.
func (p *Pass) rules(f *Finding) []string {
	if f.Standard != "" {
		return []string{f.Standard}
	}
	return append(strings.Split(p.doc.Standard, ", "), f.Rule)
}
