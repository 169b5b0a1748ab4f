// Package lint finds retry bugs in Go source, precisely enough to block a
// merge.
//
// [Analyzers] are ordinary analyzers for golang.org/x/tools/go/analysis; they
// read one picture of each retry (internal/retry), which is drawn by carrying the
// code out under an assumed end of the operation (internal/eval): that tells a
// retry from polling, tickers, pacing and iteration. [Rules] is their
// documentation. The driver behind forbear lint is the package driver;
// cmd/forbear-vet is the tool for go vet -vettool; the package plugin is for
// golangci-lint.
//
// Experimental: what this package exports may change in any version.
package lint

import (
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/attempts"
	"github.com/forbear-go/forbear/lint/bypassed"
	"github.com/forbear-go/forbear/lint/ctxsleep"
	"github.com/forbear-go/forbear/lint/deferloop"
	"github.com/forbear-go/forbear/lint/drain"
	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/freshkey"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/nested"
	"github.com/forbear-go/forbear/lint/nojitter"
	"github.com/forbear-go/forbear/lint/nonretryable"
	"github.com/forbear-go/forbear/lint/retryafter"
	"github.com/forbear-go/forbear/lint/rewind"
	"github.com/forbear-go/forbear/lint/totalduration"
	"github.com/forbear-go/forbear/lint/unbounded"
	"github.com/forbear-go/forbear/lint/unkeyed"
	"github.com/forbear-go/forbear/lint/uselesssleep"
)

// Version is the version of the rules, as SARIF reports it.
// It changes when a rule finds more or less than before.
const Version = "0.1.0"

// Doc documents one rule.
type Doc = rule.Doc

// HelpURL returns where a rule is documented.
// The anchor is the identifier in lower case, as the headings of RULES.md have
// it.
func HelpURL(id string) string {
	return "https://github.com/forbear-go/forbear/blob/main/lint/RULES.md#" + strings.ToLower(id)
}

// registered pairs each rule's documentation with its analyzer.
var registered = []struct {
	doc      *rule.Doc
	analyzer *analysis.Analyzer
}{
	{fixedinterval.Doc, fixedinterval.Analyzer},
	{nojitter.Doc, nojitter.Analyzer},
	{equaljitter.Doc, equaljitter.Analyzer},
	{unbounded.Doc, unbounded.Analyzer},
	{attempts.Doc, attempts.Analyzer},
	{totalduration.Doc, totalduration.Analyzer},
	{ctxsleep.Doc, ctxsleep.Analyzer},
	{unkeyed.Doc, unkeyed.Analyzer},
	{freshkey.Doc, freshkey.Analyzer},
	{nonretryable.Doc, nonretryable.Analyzer},
	{nested.Doc, nested.Analyzer},
	{bypassed.Doc, bypassed.Analyzer},
	{rewind.Doc, rewind.Analyzer},
	{drain.Doc, drain.Analyzer},
	{deferloop.Doc, deferloop.Analyzer},
	{uselesssleep.Doc, uselesssleep.Analyzer},
	{retryafter.Doc, retryafter.Analyzer},
}

// Rules returns the documentation of all rules, in the order of their numbers.
func Rules() []*Doc {
	docs := append(make([]*Doc, 0, len(registered)+3), directiveDocs...)
	for _, r := range registered {
		docs = append(docs, r.doc)
	}
	return docs
}

// Analyzers returns the analyzers of all rules, in the order of their numbers.
func Analyzers() []*analysis.Analyzer {
	list := make([]*analysis.Analyzer, 0, len(registered))
	for _, r := range registered {
		list = append(list, r.analyzer)
	}
	return list
}

// Explain returns the documentation of the rule with the given identifier.
// Upper and lower case are the same; ok is false for an unknown rule.
func Explain(id string) (*Doc, bool) {
	for _, d := range Rules() {
		if strings.EqualFold(d.ID, id) {
			return d, true
		}
	}
	return nil, false
}

// RuleOf returns the identifier of the rule of Analyzers()[i].
// It panics for an index out of range.
func RuleOf(i int) string { return registered[i].doc.ID }
