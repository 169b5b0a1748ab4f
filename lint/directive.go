package lint

import (
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Directives reports directives that are at fault themselves: without a reason
// (FB0001), of an unknown rule (FB0002), or suppressing nothing (FB0003).
var Directives = &analysis.Analyzer{
	Name:       "fb0000",
	Doc:        "FB0001, FB0002, FB0003: faulty forbear:ignore directives\n\nA directive names the rule and a reason, and is deleted when no longer needed.",
	URL:        HelpURL("FB0001"),
	Requires:   append(Analyzers(), rule.Directives),
	ResultType: reflect.TypeFor[rule.Findings](),
	Run:        runDirectives,
}

// directiveDocs document the rules about directives, which are no analyzers of
// their own: one pass judges all three.
var directiveDocs = []*Doc{
	{ID: "FB0001", Name: "DirectiveReason", Title: "directive without a reason", Remedy: "write a reason after the rule: //forbear:ignore FB1001 the vendor asks for exactly 5 s", Standard: "suppression", Text: "Write the reason: //forbear:ignore FB1001 the vendor asks for exactly 5 s. Without a reason it suppresses nothing."},
	{ID: "FB0002", Name: "DirectiveRule", Title: "directive of an unknown rule", Remedy: "name a rule that forbear lint --rules lists", Standard: "suppression", Text: "The directive names a rule that does not exist. See forbear lint --rules."},
	{ID: "FB0003", Name: "DirectiveUnused", Title: "directive that suppresses nothing", Remedy: "delete the directive", Standard: "suppression", Text: "Nothing is found on the directive's line, so it can be deleted."},
}

// runDirectives runs after all rules, which mark the directives that they use.
// Tests are left out, since nothing is judged in them. A nolint directive may be
// meant for another linter, so it is never reported as unused.
func runDirectives(pass *analysis.Pass) (any, error) {
	var found rule.Findings
	report := func(d *rule.Directive, id, message string) {
		found = append(found, &rule.Finding{Rule: id, Confidence: rule.High, Pos: d.Pos, End: d.End, Message: message, Callees: []string{strings.Join(d.Rules, ",")}})
		pass.Report(analysis.Diagnostic{Pos: d.Pos, End: d.End, Category: id, Message: id + ": " + message})
	}
	for _, d := range pass.ResultOf[rule.Directives].(*rule.DirectiveSet).All {
		if strings.HasSuffix(pass.Fset.Position(d.Pos).Filename, "_test.go") {
			continue
		}
		unknown := false
		for _, id := range d.Rules {
			if _, ok := Explain(id); !ok {
				unknown = true
				report(d, "FB0002", "directive names an unknown rule: "+`"`+id+`"`)
			}
		}
		switch {
		case unknown:
		case d.Reason == "":
			report(d, "FB0001", "directive has no reason, so it suppresses nothing")
		case !d.Used && !d.Nolint:
			report(d, "FB0003", "directive suppresses nothing: "+strings.Join(d.Rules, ", ")+" is not found here")
		}
	}
	return found, nil
}
