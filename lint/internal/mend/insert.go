package mend

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Inserted is what the fixes of retries without a wait say of themselves.
const Inserted = "wait before each further attempt a random time below a ceiling that doubles from 100 ms"

// firstCeiling is the ceiling of the first wait that is inserted.
const firstCeiling = 100 * time.Millisecond

// Wait gives a wait to a retry that has none. It stands at the head of each turn
// but the first, so that it is passed however the turn before ended, and no
// wait follows the last attempt. Where a context is in scope the wait ends with
// it, or there is no fix: a deaf sleep is no remedy.
func Wait(p *rule.Pass, r *retryloop.Region) []analysis.SuggestedFix {
	s, ok := siteOf(p, r)
	if !ok || r.Node == nil || len(r.Waits) > 0 {
		return nil
	}
	body := loopBody(r.Node)
	c := s.counterOf(r.Node)
	var edits []analysis.TextEdit
	if c == nil {
		c, edits = s.countRange(r.Node)
	}
	// The wait stands in front of the first statement, and in its scope.
	if body == nil || len(body.List) == 0 || c == nil || !c.known || c.last <= c.first || c.first > 1 {
		return nil
	}
	at := body.List[0].Pos()
	src := s.source([]token.Pos{at})
	clock, imports := s.imported("time"), []string(nil)
	switch {
	case src == nil || !s.predeclared(at, "min") || !s.atLeast("go1.22"):
		return nil
	case clock == "" && s.resolves("time", at) == nil && !s.fileName("time"):
		clock, imports = "time", []string{`"time"`}
	case clock == "" || !s.named(clock, at):
		return nil
	}
	wait := s.inserted(c, src, clock)
	if ctx, named := ContextAt(p, at, r.Node); named {
		wait = s.contextWait(s.path(at), ctx, clock+".After("+wait+")")
	} else if ctx != "" {
		return nil // a sleep would be deaf to it
	} else {
		wait = clock + ".Sleep(" + wait + ")"
	}
	if wait == "" {
		return nil
	}
	text := "if " + c.name + " > " + strconv.FormatInt(c.first, 10) + " {\n" + tabbed(wait) + "}\n"
	edits = append(edits, s.before(body.List[0], text))
	return s.suggest(Inserted, edits, append(imports, src.imports()...)...)
}

// inserted spells the wait: the counter has gone up by one when it comes first.
func (s site) inserted(c *counter, src *source, clock string) string {
	base := firstCeiling >> (c.first + 1) // 50 ms << 1, or 25 ms << 2
	x := strconv.FormatInt(base.Milliseconds(), 10) + " * " + clock + ".Millisecond << " + c.name
	switch {
	case c.last > 30:
		x = strconv.FormatInt(base.Milliseconds(), 10) + " * " + clock + ".Millisecond << min(" + c.name + ", 9)"
	case base<<c.last > ceiling:
		x = "min(30 * " + clock + ".Second, " + x + ")"
	}
	if src.v2 {
		return pretty(src.name + ".N(" + x + ")")
	}
	return pretty(clock + ".Duration(" + src.name + ".Int63n(int64(" + x + ")))")
}

// tabbed puts a tab before each line.
func tabbed(text string) string { return "\t" + strings.ReplaceAll(text, "\n", "\n\t") + "\n" }

// loopBody is the body of a loop statement, or nil.
func loopBody(loop ast.Node) *ast.BlockStmt {
	switch loop := loop.(type) {
	case *ast.ForStmt:
		return loop.Body
	case *ast.RangeStmt:
		return loop.Body
	}
	return nil
}
