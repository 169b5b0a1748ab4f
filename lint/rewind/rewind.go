// Package rewind reports request bodies that are sent a second time without
// being rewound (FB1051).
//
// Experimental: what this package exports may change in any version.
package rewind

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1051.
var Doc = &rule.Doc{
	ID:     "FB1051",
	Name:   "BodyNotRewound",
	Title:  "request body not rewound",
	Remedy: "build the request or its body again for each attempt, or rewind it with GetBody",
	Text: `The first attempt reads the request's body to its end; the second sends an empty one, or
fails. net/http rewinds for redirects only, not for a second Do.

Reported are requests with a body that are built before the loop and sent in it, and readers
made before the loop that each attempt reads, with no Seek, Reset, GetBody or new Body in the
loop.`,
	Bad: `req, _ := http.NewRequest("PUT", url, bytes.NewReader(b))
for range 3 {
	resp, err = client.Do(req)
	...
}`,
	Good: `for range 3 {
	req, _ := http.NewRequest("PUT", url, bytes.NewReader(b))
	resp, err = client.Do(req)
	...
}`,
	Standard: "R-6",
}

// Analyzer finds bodies that are not rewound.
var Analyzer = rule.New(Doc, run)

// run reports a region once, by the first operation that sends a spent body.
// A recursion builds its request anew, as a rule, and is left out.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Loop == nil || !r.Pure || rewinds(r) {
			continue
		}
		for _, op := range r.Ops {
			if spent := spentBody(r, op); spent != "" {
				p.ReportRetry(r, rule.High, "sends "+spent+" again by "+retry.Describe(op.Common())+" without rewinding it")
				break
			}
		}
	}
}

// spentBody says which body op sends that an earlier attempt has read.
// It is "" when no body is known to be spent. A request that another function
// has built is not judged: it may set GetBody, and the client in use may call
// it.
func spentBody(r *retry.Retry, op *ssa.Call) string {
	com := op.Common()
	sends := eval.CalleePkg(com) == "net/http"
	for _, a := range com.Args {
		switch {
		case retry.IsNamed(a.Type(), "net/http", "Request"):
			c := builder(a, 0)
			if c == nil {
				continue
			}
			// It takes the body last.
			body := c.Common().Args[len(c.Common().Args)-1]
			if isNone(body) {
				continue
			}
			// The request itself outlives the attempt, and its body with it.
			if !r.Contains(c) {
				return "the body of a request built before the loop"
			}
			if outside(r, body, 0) {
				return "a reader made before the loop"
			}
		// http.Post and its like take the reader without a request around it.
		case sends && isReader(a.Type()) && !isNone(a) && outside(r, a, 0):
			return "a reader made before the loop"
		}
	}
	return ""
}

// builder returns the http.NewRequest behind a request.
// Copies of a request share its body, so it looks through them. A request from
// any other function yields nil.
func builder(v ssa.Value, depth int) *ssa.Call {
	if depth > 4 {
		return nil
	}
	switch v := v.(type) {
	case *ssa.Extract:
		return builder(v.Tuple, depth+1)
	case *ssa.Call:
		if retry.CallsTo(v.Common(), "net/http", "NewRequest", "NewRequestWithContext") {
			return v
		}
		if retry.CallsTo(v.Common(), "net/http", "WithContext", "Clone") {
			return builder(v.Common().Args[0], depth+1)
		}
	}
	return nil
}

// isNone reports whether a body is nil, http.NoBody, or may be either.
// A body that is nil on one path is sent again safely there, so the rule stays
// silent.
func isNone(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.Const:
		return v.IsNil()
	case *ssa.MakeInterface:
		return isNone(v.X)
	case *ssa.ChangeInterface:
		return isNone(v.X)
	case *ssa.UnOp:
		g, ok := v.X.(*ssa.Global)
		return ok && g.Name() == "NoBody"
	case *ssa.Phi:
		return slices.ContainsFunc(v.Edges, isNone)
	}
	return false
}

// isReader reports whether t is the interface io.Reader itself, which has no way
// to rewind. A concrete type such as *os.File is not, because its methods may.
func isReader(t types.Type) bool { return types.TypeString(t, nil) == "io.Reader" }

// outside reports whether a reader lives longer than one attempt.
// A parameter counts when it can be read only once, or when it is a buffer of
// package bytes. Fields and globals are not followed: other code may refill
// them.
func outside(r *retry.Retry, v ssa.Value, depth int) bool {
	if depth > 6 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Parameter:
		return isReader(v.Type()) || strings.HasPrefix(types.TypeString(v.Type(), nil), "*bytes.")
	case *ssa.Call:
		return !r.Contains(v) && makesReader(v)
	case *ssa.MakeInterface:
		return outside(r, v.X, depth+1)
	case *ssa.ChangeInterface:
		return outside(r, v.X, depth+1)
	}
	return false
}

// makesReader reports whether a call makes a reader that is spent once it has
// been read.
// The list is short, since each entry must be certain.
func makesReader(c *ssa.Call) bool {
	return retry.CallsTo(c.Common(), "bytes", "NewReader", "NewBuffer", "NewBufferString") ||
		retry.CallsTo(c.Common(), "strings", "NewReader") || retry.CallsTo(c.Common(), "bufio", "NewReader")
}

// rewinds reports whether the loop gives the request a body for each attempt.
// Any such call in the loop silences the rule, whichever body it is about. The
// names cover clients that set a body by a method of their own.
func rewinds(r *retry.Retry) bool {
	for in := range retry.Instrs[ssa.Instruction](r) {
		switch in := in.(type) {
		case *ssa.Call:
			switch eval.CalleeName(in.Common()) {
			case "Seek", "Reset", "GetBody", "SetBody", "Rewind", "NopCloser", "Truncate":
				return true
			}
		case *ssa.Store:
			if retry.FieldName(in.Addr) == "Body" {
				return true
			}
		}
	}
	return false
}
