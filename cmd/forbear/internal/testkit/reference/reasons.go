package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// Reasons returns the page of all reasons of a decision. Their meaning is the comment
// beside each in reason/reason.go, which is read from root.
func Reasons(root string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "reason", "reason.go"), nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var said []string // by the constants' order, which is their value
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST || len(said) > 0 {
			return true
		}
		for _, s := range decl.Specs {
			said = append(said, strings.TrimSpace(s.(*ast.ValueSpec).Comment.Text()))
		}
		return false
	})
	p := begin("Reasons", "`reason/reason.go`")
	p.line("Why a call was retried or ended: the field `reason` of logs and metrics, the gateway's `Forbear-Stop`, and in Go\n`forbear.Error.Reason`. Errors are for `errors.Is`. \"After 4 attempts in 7.2s\" in a message counts the first attempt.\n`forbear explain budget_exhausted` prints the same.\n")
	p.heading(2, "Retried")
	var stopped []forbear.Reason
	for r := reason.None + 1; int(r) < len(said); r++ {
		if strings.HasPrefix(said[r], "retry: ") {
			p.reason(r, "")
		} else {
			stopped = append(stopped, r)
		}
	}
	p.heading(2, "Stopped")
	for _, r := range stopped {
		name := sentinel(r)
		if name == "" && edge.Sentinel(r) != nil {
			return "", fmt.Errorf("reason %v has an error whose name is not known here", r)
		}
		p.reason(r, name)
	}
	p.heading(2, "Momentary")
	p.line("`budget_exhausted`, `breaker_open`, `unhealthy`, `bulkhead_full` and `paced` concern only the moment: durable work is\npostponed, and uses no attempt.")
	return p.String(), nil
}

// reason writes what is known of r, under a heading that messages link to.
func (p *page) reason(r forbear.Reason, name string) {
	p.heading(3, tick(r.String()))
	x := explain.Reasons()[r-reason.None-1]
	p.line("%s\n", plain(x.Means))
	var facts []string
	if rule := r.Rule(); strings.HasPrefix(rule, "R-") {
		facts = append(facts, "["+rule+"](../rules.md)")
	}
	if name != "" {
		facts = append(facts, tick(name))
	}
	if counted := counted(r); counted != "" {
		facts = append(facts, "counted in "+counted)
	}
	if len(facts) > 0 {
		p.line("%s", strings.Join(facts, "; "))
	}
	if x.Figures != "" {
		p.line("\nFigures: %s", plain(x.Figures))
	}
	p.line("\nFix: %s", plain(x.Change))
	if len(x.Settings) > 0 {
		p.line("[Keys](policy.md#a-dependency): %s.", tick(strings.Join(x.Settings, "`, `")))
	}
	guide := strings.TrimPrefix(x.Guide, explain.Docs)
	p.line("More: [%s](../%s).", path.Base(guide), guide)
}

// counted names the metric that counts calls that stop for r.
func counted(r forbear.Reason) string {
	switch {
	case r.Exhausted():
		return "`retry_exhausted_total`"
	case r.Suppressed():
		return "`retry_suppressed_total`"
	}
	return ""
}

// sentinel returns the name of r's error, "" where it has none that is listed.
func sentinel(r forbear.Reason) string {
	for name, err := range map[string]error{
		"ErrExhausted": forbear.ErrExhausted, "ErrBudgetExhausted": forbear.ErrBudgetExhausted, "ErrBreakerOpen": forbear.ErrBreakerOpen,
		"ErrUnhealthy": forbear.ErrUnhealthy, "ErrDeadline": forbear.ErrDeadline, "ErrCanceled": forbear.ErrCanceled,
		"ErrNotReplayable": forbear.ErrNotReplayable, "ErrTerminal": forbear.ErrTerminal, "ErrCertificate": forbear.ErrCertificate,
		"ErrServerStop": forbear.ErrServerStop, "ErrExhaustedBelow": forbear.ErrExhaustedBelow, "ErrInner": forbear.ErrInner,
		"ErrBulkheadFull": forbear.ErrBulkheadFull, "ErrPaced": forbear.ErrPaced, "ErrRefreshFailed": credential.ErrRefreshFailed,
		"ErrWeakCredential": credential.ErrWeak,
	} {
		if edge.Sentinel(r) == err {
			return name
		}
	}
	return ""
}
