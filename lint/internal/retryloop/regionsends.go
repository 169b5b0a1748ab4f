package retryloop

import (
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Sends returns the requests that the region's operations send.
func (r *Region) Sends() []Send { return sendsOf(r.f.Scope, r.Ops) }

// sendsOf returns the requests that operations of a function send.
func sendsOf(s *Scope, ops []*ssa.Call) []Send {
	sum := &Summary{}
	for _, op := range ops {
		callEffects(s.known, op.Common(), false, sum)
		for _, a := range op.Common().Args {
			requestArg(s, a, sum)
		}
	}
	return sum.Sends
}

// requestArg finds the call that built a request which an operation is given.
func requestArg(s *Scope, v ssa.Value, sum *Summary) {
	if p, ok := v.Type().(*types.Pointer); !ok || !isRequest(p) {
		return
	}
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if v == nil || seen[v] || len(seen) > 40 {
			return
		}
		seen[v] = true
		switch v := v.(type) {
		case *ssa.Extract:
			visit(v.Tuple)
		case *ssa.Phi:
			for _, e := range v.Edges {
				visit(e)
			}
		case *ssa.UnOp:
			for _, st := range s.storesTo(v.X) {
				visit(st.Val)
			}
		case *ssa.Alloc: // &http.Request{Method: "POST"}
			for _, st := range methodStores(v) {
				if m, ok := ConstString(st.Val); ok {
					sum.addSend(Send{Method: strings.ToUpper(m), Param: -1})
				}
			}
		case *ssa.Call:
			callEffects(s.known, v.Common(), false, sum)
			if n := CalleeName(v.Common()); n == "WithContext" || n == "Clone" || n == "FromRequest" {
				for _, a := range v.Common().Args {
					visit(a)
				}
			}
		}
	}
	visit(v)
}

// methodStores returns the stores to the Method of a request that is made in
// place.
func methodStores(a *ssa.Alloc) (found []*ssa.Store) {
	if !isRequest(a.Type()) || a.Referrers() == nil {
		return nil
	}
	for _, ref := range *a.Referrers() {
		fa, ok := ref.(*ssa.FieldAddr)
		if !ok || FieldName(fa.X.Type(), fa.Field) != "Method" {
			continue
		}
		for _, u := range *fa.Referrers() {
			if s, ok := u.(*ssa.Store); ok && s.Addr == ssa.Value(fa) {
				found = append(found, s)
			}
		}
	}
	return found
}

func isRequest(t types.Type) bool {
	return IsNamed(t, "net/http", "Request") || IsNamed(t, "github.com/hashicorp/go-retryablehttp", "Request")
}

// Keyed reports whether the function around the region, or one around that,
// mentions an idempotency key.
func (r *Region) Keyed() bool { return keyedAround(r.Fn) }

func keyedAround(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if mentionsKey(fn) {
			return true
		}
	}
	return false
}

// MentionsKey reports whether fn or a function around it mentions an
// idempotency key.
func (r *Result) MentionsKey(fn *ssa.Function) bool { return keyedAround(fn) }

var readOnlyWord = regexp.MustCompile(`(?i)graphql|query|search|check|expand|evaluat|validat|verif|estimat|preview|describe|_bulk|token|oauth|auth|login|session|lookup|list|find|select|get|read|fetch|rpc`)

// ReadOnlyName reports whether the name of fn, or a string in it, says that
// what it sends only reads.
func ReadOnlyName(fn *ssa.Function) bool {
	if readOnlyWord.MatchString(fn.Name()) {
		return true
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			for _, op := range in.Operands(nil) {
				if *op == nil {
					continue
				}
				if s, ok := ConstString(*op); ok && len(s) > 1 && (s[0] == '/' || len(s) > 8 && s[:4] == "http") && readOnlyWord.MatchString(s) {
					return true
				}
			}
		}
	}
	return false
}

// ReadOnly reports whether the region's names say that it only reads.
func (r *Region) ReadOnly() bool {
	if ReadOnlyName(r.Fn) {
		return true
	}
	for _, op := range r.Ops {
		if g := static(op.Common()); g != nil && ReadOnlyName(g) {
			return true
		}
	}
	return false
}

// RetriedCallback returns the function that c hands to a helper which calls it
// again when it fails, or nil.
func (r *Result) RetriedCallback(c *ssa.Call) *ssa.Function {
	sum := r.known.of(c.Common())
	if (sum == nil || !sum.Retrier) && !knownRetrier(c.Common()) {
		return nil
	}
	for _, a := range c.Common().Args {
		if ct, ok := a.(*ssa.ChangeType); ok {
			a = ct.X
		}
		switch a := a.(type) {
		case *ssa.MakeClosure:
			return a.Fn.(*ssa.Function)
		case *ssa.Function:
			if len(a.Blocks) > 0 {
				return a
			}
		}
	}
	return nil
}

// retriers are functions of the common libraries that call a function again
// when it fails.
var retriers = map[string]map[string]bool{
	"github.com/cenkalti/backoff":                               {"Retry": true, "RetryNotify": true, "RetryWithData": true, "RetryNotifyWithData": true},
	"github.com/cenkalti/backoff/v3":                            {"Retry": true, "RetryNotify": true},
	"github.com/cenkalti/backoff/v4":                            {"Retry": true, "RetryNotify": true, "RetryWithData": true, "RetryNotifyWithData": true},
	"github.com/cenkalti/backoff/v5":                            {"Retry": true},
	"github.com/avast/retry-go":                                 {"Do": true},
	"github.com/avast/retry-go/v3":                              {"Do": true},
	"github.com/avast/retry-go/v4":                              {"Do": true, "DoWithData": true},
	"github.com/avast/retry-go/v5":                              {"Do": true, "DoWithData": true},
	"github.com/sethvargo/go-retry":                             {"Do": true, "DoValue": true, "Constant": true, "Exponential": true, "Fibonacci": true},
	"github.com/failsafe-go/failsafe-go":                        {"Run": true, "Get": true, "RunWithExecution": true, "GetWithExecution": true, "With": true},
	"github.com/buildkite/roko":                                 {"Do": true, "DoWithContext": true, "DoFunc": true},
	"k8s.io/client-go/util/retry":                               {"OnError": true, "RetryOnConflict": true},
	"github.com/googleapis/gax-go/v2":                           {"Invoke": true},
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/retry": {"RetryContext": true},
}

func knownRetrier(c *ssa.CallCommon) bool { return retriers[CalleePkg(c)][CalleeName(c)] }

// RetriedMethod returns the HTTP method that c hands to a function which
// retries it, or "".
func (r *Result) RetriedMethod(c *ssa.Call) string {
	sum := r.known.of(c.Common())
	if sum == nil {
		return ""
	}
	for _, snd := range sum.Retried {
		if m, _ := methodArg(c.Common(), snd.Param); m != "" {
			return m
		}
	}
	return ""
}
