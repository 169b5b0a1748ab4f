//forbear:plain rules have no goroutines; package lint runs them at once
package status

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// grpc stands in for the packages of gRPC.
var grpc = map[string]string{
	"google.golang.org/grpc": "package grpc\ntype CallOption interface{ option() }",
	"google.golang.org/grpc/codes": `package codes
type Code uint32
const (OK Code = 0; InvalidArgument Code = 3; NotFound Code = 5; PermissionDenied Code = 7; Unavailable Code = 14; Unauthenticated Code = 16)`,
	"google.golang.org/grpc/status": "package status\nimport \"google.golang.org/grpc/codes\"\nfunc Code(error) codes.Code",
}

const preamble = `package p
import (
	"crypto/x509"; "errors"; "fmt"; "net/http"; "slices"; "strings"
	"google.golang.org/grpc"; "google.golang.org/grpc/codes"; "google.golang.org/grpc/status"
)
var final = map[int]bool{400: true, 404: true, 429: false}
func do() (*http.Response, error)
func rpc(opts ...grpc.CallOption) error
func allowed(list []int, status int) bool
`

// judge returns the judge of a source and the scope of its function f.
func judge(t *testing.T, src string) (*Judge, *fact.Scope) {
	t.Helper()
	p := ssatest.LoadWith(t, grpc, preamble+src)
	var j *Judge
	known := fact.NewTable(p.Pass, p.Package, func(s *fact.Scope, sum *fact.Summary) {
		if len(s.Fn.Blocks) > 0 && s.Fn.Signature.Results().Len() > 0 {
			sum.Fails, sum.Yes, sum.No, sum.Guessed = j.Outcome(s)
		}
	})
	j = New(known)
	return j, known.Scope(p.Fn(t, "f"))
}

// in turns a set into those of the responses with names that it holds.
func in(set codeset.Set, grpc bool) (held []int64) {
	for _, r := range Responses(grpc) {
		if set.Has(r.Number) {
			held = append(held, r.Number)
		}
	}
	return held
}

// retried returns the responses after which the first loop certainly begins another
// turn.
func retried(j *Judge, s *fact.Scope, grpc bool) []int64 {
	set, _ := j.Retried(s, s.Loops[0], nil, nil, grpc)
	return in(set, grpc)
}

// yesOf returns the statuses for which a predicate certainly returns true.
func yesOf(j *Judge, fn *ssa.Function) []int64 {
	yes, _ := j.Yes(fn, false)
	return in(yes, false)
}

// TestRetried: after which statuses a loop certainly begins another turn.
func TestRetried(t *testing.T) {
	failures := []int64{400, 401, 403, 404, 409, 422, 429, 503}
	tests := []struct {
		name, body string
		want       []int64
	}{
		{"all but success", `if resp.StatusCode == 200 { return }`, failures},
		{"a range", `if resp.StatusCode < 500 { return }`, []int64{503}},
		{"a class", `if resp.StatusCode/100 != 5 { return }`, []int64{503}},
		{"one of two", `if resp.StatusCode != 429 && resp.StatusCode != 503 { return }`, []int64{429, 503}},
		{"switch", `switch resp.StatusCode { case 200, 400: return }`, failures[1:]},
		{"predicate", `if !again(resp.StatusCode) { return }`, []int64{429, 503}},
		{"predicate on the response", `if !againResp(resp) { return }`, []int64{503}},
		{"map", `if final[resp.StatusCode] || resp.StatusCode == 200 { return }`, []int64{401, 403, 409, 422, 429, 503}},
		{"list", `if !slices.Contains([]int{429, 503}, resp.StatusCode) { return }`, []int64{429, 503}},
		{"list and a search of its own", `if !contains([]int{503}, resp.StatusCode) { return }`, []int64{503}},
		{"error of a check", `if err = check(resp); err == nil { return }`, failures[:]},
		{"the status does not matter", `if n > 3 { return }`, nil},
		{"goes on after success", `if resp.StatusCode == 400 { return }`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, s := judge(t, `
func again(status int) bool { return status == 429 || status >= 500 }
func againResp(resp *http.Response) bool { return resp.StatusCode >= 500 }
func contains(list []int, n int) bool { for _, x := range list { if x == n { return true } }; return false }
func check(resp *http.Response) error { if resp.StatusCode >= 300 { return fmt.Errorf("status %d", resp.StatusCode) }; return nil }
func f() {
	for n := 0; ; n++ {
		resp, err := do()
		if err != nil { continue }
		`+tt.body+`
	}
}`)
			for range 2 { // what the first question leaves behind must not change the second
				if got := retried(j, s, false); !slices.Equal(got, tt.want) {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			}
		})
	}
}

// TestTurnBefore: what one turn leaves in a variable decides the next one, and no
// other question.
func TestTurnBefore(t *testing.T) {
	j, s := judge(t, `func f() {
	for again := true; again; {
		resp, _ := do()
		again = resp.StatusCode >= 500
	}
}`)
	for range 2 {
		if got := retried(j, s, false); !slices.Equal(got, []int64{503}) {
			t.Errorf("got %v, want 503 alone", got)
		}
		if got := j.Undecided(s, s.Loops[0], codeset.Of(400), false); len(got) != 1 {
			t.Errorf("got %d branches, want the head of the loop: what the turn before was is not known", len(got))
		}
	}
}

// TestGivesUp: what is too deep to be followed makes nothing certain, also not
// what stands beside it.
func TestGivesUp(t *testing.T) {
	for depth, want := range map[int][]int64{10: {503}, 100: nil} {
		j, s := judge(t, `func f() {
	for {
		resp, _ := do()
		if resp.StatusCode`+strings.Repeat("+1", depth)+` < 500 { return }
		if resp.StatusCode == 200 { return }
	}
}`)
		for range 2 * patience {
			if got := retried(j, s, false); !slices.Equal(got, want) {
				t.Errorf("%d sums: got %v, want %v", depth, got, want)
			}
		}
	}
}

// TestOrder: a question about one result leaves nothing undecided for the next.
func TestOrder(t *testing.T) {
	const src = `func f() (int, error) {
	n := 0
	if resp, err := do(); err == nil { n = resp.StatusCode }
	if n == 503 { return n, errors.New("") }
	return n, nil
}`
	j, s := judge(t, src)
	j.Status(s)
	if got, _, _, _ := j.Outcome(s); got != codeset.Of(503) {
		t.Errorf("got %v after another question, want 503 alone", got)
	}
}

// TestRetriedCodes is TestRetried for gRPC.
func TestRetriedCodes(t *testing.T) {
	tests := []struct {
		name, body string
		want       []int64
	}{
		{"one code", `if status.Code(err) != codes.Unavailable { return }`, []int64{14}},
		{"all but one", `if err == nil || status.Code(err) == codes.NotFound { return }`, []int64{3, 7, 12, 16, 14}},
		{"switch", `switch status.Code(err) { case codes.OK, codes.InvalidArgument, codes.PermissionDenied: return }`, []int64{5, 12, 16, 14}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, s := judge(t, "func f() { for { err := rpc(); "+tt.body+" } }")
			if got := retried(j, s, true); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestUndecided: a branch that looks at more than the status leaves doubt.
func TestUndecided(t *testing.T) {
	tests := []struct {
		name, body string
		want       int
	}{
		{"status alone", `if resp.StatusCode < 500 { return }`, 0},
		{"the body decides", `if resp.StatusCode < 500 { return }; if resp.ContentLength > 3 { return }`, 1},
		// The choice between the bounds is one branch that the status does not decide.
		{"beyond either bound", `most := 299; if resp.ContentLength > 3 { most = 204 }; if resp.StatusCode <= most { return }`, 1},
		{"beyond one bound", `most := 299; if resp.ContentLength > 3 { most = 599 }; if resp.StatusCode <= most { return }`, 2},
		{"a class of two", `class := 2; if resp.ContentLength > 3 { class = 3 }; if resp.StatusCode/100 <= class { return }`, 1},
		{"the body of another status decides", `if resp.StatusCode < 500 { if resp.ContentLength > 3 { return } else { return } }`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, s := judge(t, "func f() { for { resp, _ := do(); "+tt.body+" } }")
			if got := j.Undecided(s, s.Loops[0], codeset.Of(503), false); len(got) != tt.want {
				t.Errorf("got %d branches, want %d", len(got), tt.want)
			}
		})
	}
}

// errs holds functions that make errors of statuses above 499, in several ways.
const errs = `var errDown = errors.New("down")
type temporary struct{}
func (*temporary) Error() string { return "" }
func (*temporary) Temporary() bool { return true }
type wrapper struct{ error }
func (w *wrapper) Unwrap() error { return w.error }
func mark(err error) error { if err != nil { return errDown }; return nil }
func plain(status int) error { if status > 499 { return &temporary{} }; return nil }
func own(status int) error { if status > 499 { return &wrapper{errDown} }; return nil }
func converted(status int) error { if status > 499 { return mark(errors.New("")) }; return nil }
`

// TestOutcome: for which statuses a function certainly returns an error, or
// true. What is not certain counts for nothing.
func TestOutcome(t *testing.T) {
	tests := []struct {
		name, source string
		fails, yes   []int64
	}{
		{"error above a status", `func f(resp *http.Response) error { if resp.StatusCode >= 429 { return errors.New("") }; return nil }`, []int64{429, 503}, nil},
		{"error with a deferred close", `func f(resp *http.Response) (err error) { defer resp.Body.Close(); if resp.StatusCode == 404 { return fmt.Errorf("") }; return nil }`, []int64{404}, nil},
		{"error that a callee may reset", `func reset(*error); func f(status int) (err error) { defer recover(); if status > 499 { err = errors.New(""); reset(&err); return err }; return nil }`, nil, nil},
		{"error that a closure may reset", `func f(status int) (err error) { reset := func() { err = nil }; defer recover(); if status > 499 { err = errors.New(""); reset(); return err }; return nil }`, nil, nil},
		{"error beside a closure that only reads", `func f(status int) (err error) { log := func() { println(err) }; defer recover(); if status > 499 { err = errors.New(""); log(); return err }; return nil }`, []int64{503}, nil},
		{"error that is dropped at the end", `func f(status int) (err error) { defer func() { err = nil }(); if status > 499 { return errors.New("") }; return nil }`, nil, nil},
		{"error that is wrapped at the end", `func f(status int) (err error) { defer func() { if err != nil { err = fmt.Errorf("f: %w", err) } }(); if status > 499 { return errors.New("") }; return nil }`, []int64{503}, nil},
		{"bool that is set on one way", `func f(status, n int) (ok bool) { var v bool; defer func() { println(v) }(); if n > 3 { v = status > 499 }; if v { return true }; return false }`, nil, nil},
		{"bool that is set first", `func f(status, n int) (ok bool) { var v bool; defer func() { println(v) }(); v = status > 499; if n > 3 { println() }; if v { return true }; return false }`, nil, []int64{503}},
		{"error of a helper", `func g(code int) error { if code > 499 { return errors.New("") }; return nil }; func f(resp *http.Response) error { return g(resp.StatusCode) }`, []int64{503}, nil},
		{"final error", `func Permanent(err error) error { return fmt.Errorf("final: %w", err) }; func f(status int) error { if status > 499 { return Permanent(errors.New("")) }; return nil }`, nil, nil},
		{"predicate", `func f(status int) bool { return status == 429 || status == 503 }`, nil, []int64{429, 503}},
		{"negated predicate", `func g(status int) bool { return status < 500 }; func f(status int) bool { return !g(status) }`, nil, []int64{503}},
		{"search of its own", `func f(status int) bool { for _, s := range []int{429, 503} { if s == status { return true } }; return false }`, nil, []int64{429, 503}},
		{"search that does not end", `func f(status int) bool { n := 0; for _, s := range []int{429, 503} { if s == status { n++ } }; println(n); return status == 429 }`, nil, []int64{429}},
		{"search for another one", `func f(status int) bool { for _, s := range []int{429, 503} { if s != status { return true } }; return false }`, nil, nil},
		{"class of a helper", `func class(code int) int { return code / 100 }; func f(status int) bool { return class(status) == 5 }`, nil, []int64{503}},
		{"class of a helper with names", `func class(code int) int { switch { case code < 300: return 1; case code < 500: return 2 }; return 3 }; func f(status int) bool { return class(status) == 3 }`, nil, []int64{503}},
		{"number of a helper that asks for more", `func class(code, n int) int { if n > 3 { return 0 }; return code / 100 }; func f(status, n int) bool { return class(status, n) == 5 }`, nil, nil},
		{"first of a list", `func f(status int) bool { codes := []int{429, 503}; return status == codes[0] }`, nil, nil},
		{"values of a map", `func f(status int) bool { for _, s := range map[int]int{503: 429} { if s == status { return false } }; return status > 428 }`, nil, nil},
		{"keys of a map", `func f(status int) bool { for s := range map[int]int{503: 429} { if s == status { return false } }; return status > 428 }`, nil, []int64{429}},
		{"error that is wrapped", `func g(code int) error { if code > 499 { return errors.New("") }; return nil }; func f(resp *http.Response) error { return errors.Join(g(resp.StatusCode), nil) }`, []int64{503}, nil},
		{"error that a converter drops", `func g(code int) error { if code > 499 { return errors.New("") }; return nil }; func drop(err error) error { println(err); return nil }; func f(resp *http.Response) error { return drop(g(resp.StatusCode)) }`, nil, nil},
		{"error that a converter keeps", `func g(code int) error { if code > 499 { return errors.New("") }; return nil }; func keep(err error) error { println(err); return err }; func f(resp *http.Response) error { return keep(g(resp.StatusCode)) }`, []int64{503}, nil},
		{"map that may hold more", `func f(status, n int) bool { m := map[int]bool{503: true}; if n > 3 { m[429] = true }; return m[status] }`, nil, []int64{503}},
		{"error that is another one", errs + `func f(resp *http.Response) bool { return resp.StatusCode > 428 && !errors.Is(plain(resp.StatusCode), errDown) }`, nil, []int64{429, 503}},
		{"error that may wrap it", errs + `func f(resp *http.Response) bool { return resp.StatusCode > 428 && !errors.Is(own(resp.StatusCode), errDown) }`, nil, []int64{429}},
		{"error that a converter makes", errs + `func f(resp *http.Response) bool { return resp.StatusCode > 428 && !errors.Is(converted(resp.StatusCode), errDown) }`, nil, []int64{429}},
		{"error of an interface", errs + `func f(resp *http.Response) bool { var t interface{ Temporary() bool }; return errors.As(plain(resp.StatusCode), &t) }`, nil, []int64{503}},
		{"error of an interface by AsType", errs + `type passing interface { error; Temporary() bool }; func f(resp *http.Response) bool { _, ok := errors.AsType[passing](plain(resp.StatusCode)); return ok }`, nil, []int64{503}},
		{"error of another interface", errs + `func f(resp *http.Response) bool { var t interface{ Timely() bool }; return resp.StatusCode > 428 && !errors.As(plain(resp.StatusCode), &t) }`, nil, []int64{429, 503}},
		{"depends on more", `func f(status int, n int) bool { return status == 503 && n > 3 }`, nil, nil},
		{"returns differ", `func f(status, n int) bool { if n > 3 { return status >= 400 }; return status >= 600 }`, nil, nil},
		{"no status", `func f(n int) bool { return n == 503 }`, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, s := judge(t, tt.source)
			fails, yes, _, _ := j.Outcome(s)
			if got := in(fails, false); !slices.Equal(got, tt.fails) {
				t.Errorf("fails: got %v, want %v", got, tt.fails)
			}
			if got := in(yes, false); !slices.Equal(got, tt.yes) {
				t.Errorf("yes: got %v, want %v", got, tt.yes)
			}
			if len(tt.yes) > 0 {
				if got := yesOf(j, s.Fn); !slices.Equal(got, tt.yes) {
					t.Errorf("Yes: got %v, want %v", got, tt.yes)
				}
			}
		})
	}
}

// TestForeignFacts: what a function of another package does is known by its
// fact.
func TestForeignFacts(t *testing.T) {
	libraries := map[string]string{"example.com/q": "package q\nimport \"net/http\"\nfunc Retryable(status int) bool\nfunc Check(*http.Response) error"}
	p := ssatest.LoadWith(t, libraries, `package p
import ("net/http"; "example.com/q")
func f(status int) bool { return q.Retryable(status) }
func g(resp *http.Response) error { if err := q.Check(resp); err != nil { return err }; return nil }`)
	p.Pass.ImportObjectFact = func(o types.Object, f analysis.Fact) bool {
		*f.(*fact.Summary) = fact.Summary{Yes: codeset.Of(503), No: codeset.Range(100, 502)}
		if o.Name() == "Check" {
			*f.(*fact.Summary) = fact.Summary{Fails: codeset.Of(400)}
		}
		return true
	}
	j := New(fact.NewTable(p.Pass, p.Package, func(*fact.Scope, *fact.Summary) {}))
	if _, yes, _, _ := j.Outcome(j.known.Scope(p.Fn(t, "f"))); yes != codeset.Of(503) {
		t.Errorf("got %v, want true for 503 alone", yes)
	}
	if fails, _, _, _ := j.Outcome(j.known.Scope(p.Fn(t, "g"))); fails != codeset.Of(400) {
		t.Errorf("got %v, want an error for 400 alone", fails)
	}
}

// TestStatus: which result of a function is the status of a response.
func TestStatus(t *testing.T) {
	for src, want := range map[string]int{
		`func f() (string, int, error) { resp, err := do(); if err != nil { return "", 0, err }; return "", resp.StatusCode, nil }`: 2,
		`func f() int { resp, _ := do(); n := resp.StatusCode; return n }`:                                                          1,
		`func f() int { resp, _ := do(); return int(resp.ContentLength) + 0*resp.StatusCode }`:                                      0,
		`func f() int { resp, _ := do(); if resp.StatusCode == 200 { return 599 }; return resp.StatusCode }`:                        0,
	} {
		j, s := judge(t, src)
		if got := j.Status(s); got != want {
			t.Errorf("%s: got %d, want %d", src, got, want)
		}
	}
}

// TestTest: which branch of a condition on a status is that of failure.
func TestTest(t *testing.T) {
	const onTrue, onFalse, none = 0, 1, -1
	tests := []struct {
		cond string
		fail int
	}{
		{`resp.StatusCode == 200`, onFalse},
		{`resp.StatusCode != 200`, onTrue},
		{`200 != resp.StatusCode`, onTrue},
		{`resp.StatusCode >= 400`, onTrue},
		{`400 <= resp.StatusCode`, onTrue},
		{`resp.StatusCode < 300`, onFalse},
		{`resp.StatusCode/100 == 2`, onFalse},
		{`resp.StatusCode/100 - 2 == 0`, onFalse},
		{`resp.StatusCode-200 < 100`, onFalse},
		{`resp.StatusCode == 503`, onTrue},
		{`resp.StatusCode != 404`, onFalse}, // may be a success or another failure, but 404 is one
		{`v.Status == 500`, onTrue},
		{`v.kind == 500`, none},
		{`n == 500`, none},
		{`resp.StatusCode == 20`, none}, // a code of another kind
		{`resp.Status == "200 OK"`, onFalse},
		{`strings.HasPrefix(resp.Status, "2")`, onFalse},
		{`final[resp.StatusCode]`, onTrue},
		{`slices.Contains([]int{200, 201}, resp.StatusCode)`, onFalse},
		{`slices.Contains([]int{1, 2}, n)`, none},
		{`ok(resp.StatusCode)`, onFalse},
		{`!ok(resp.StatusCode)`, onTrue},
		{`v.ok()`, onFalse},
		{`respOK(resp)`, onFalse},
		{`small(resp)`, none},
		{`status.Code(err) == codes.OK`, onFalse},
		{`status.Code(err) != codes.OK`, onTrue},
		{`status.Code(err) == codes.Unavailable`, onTrue},
		{`status.Code(err) != codes.Unavailable`, onFalse},
	}
	for _, tt := range tests {
		t.Run(tt.cond, func(t *testing.T) {
			j, s := judge(t, `type v struct { Status, kind int }
func ok(code int) bool { return code >= 200 && code < 300 }
func (v v) ok() bool { return v.Status/100 == 2 }
func respOK(resp *http.Response) bool { good := resp.StatusCode == 200 || resp.StatusCode == 204; return good }
func small(resp *http.Response) bool { return resp.ContentLength < 3 }
func f(resp *http.Response, err error, n int, v v) bool { return `+tt.cond+" }")
			ret := s.Fn.Blocks[0].Instrs[len(s.Fn.Blocks[0].Instrs)-1].(*ssa.Return)
			got := none
			if test := j.Test(s, ret.Results[0]); test != nil {
				got = test.Fail
			}
			if got != tt.fail {
				t.Errorf("got the failure on %d, want %d", got, tt.fail)
			}
		})
	}
}

// TestMerged: a condition that is kept in a variable is that of all its parts.
func TestMerged(t *testing.T) {
	for cond, fail := range map[string]int{
		`resp.StatusCode >= 200 && resp.StatusCode < 300`:          1,
		`resp.StatusCode < 200 || resp.StatusCode > 299`:           0,
		`err != nil || resp.StatusCode >= 400`:                     0,
		`resp.StatusCode >= 200 && resp.StatusCode < 300 && n > 3`: 1,
		`resp.StatusCode >= 100 && resp.StatusCode < 600`:          -1,
		`resp.StatusCode == expected && err == nil`:                1,
		`resp.StatusCode == n && err == nil`:                       -1,
		`resp.StatusCode == unexpected && err == nil`:              -1,
		`resp.StatusCode == retrieve && n > 3`:                     -1,
		`resp.StatusCode == retryOn && n > 3`:                      0,
	} {
		j, s := judge(t, "func f(resp *http.Response, err error, n, expected, unexpected, retryOn, retrieve int) bool { v := "+cond+"; return v }")
		for ret := range dataflow.Instrs[*ssa.Return](s.Fn) {
			got := -1
			if test := j.Test(s, ret.Results[0]); test != nil {
				got = test.Fail
			}
			if got != fail {
				t.Errorf("%s: got the failure on %d, want %d", cond, got, fail)
			}
		}
	}
}

// TestSources: the status of a response leads back to the call that yielded it.
func TestSources(t *testing.T) {
	for _, expr := range []string{`resp.StatusCode == 503`, `resp.StatusCode/100 == 5`, `status.Code(err) == codes.Unavailable`} {
		j, s := judge(t, "func f() { for { resp, err := do(); _, _ = resp, err; if "+expr+" { return } } }")
		for _, b := range s.Fn.Blocks {
			if i := dataflow.IfOf(b); i != nil {
				ops := Sources(s.Func, j.Test(s, i.Cond).Of[0], s.Loops[0])
				if len(ops) != 1 || dataflow.CalleeName(ops[0].Common()) != "do" {
					t.Errorf("%s: got %v, want the call of do", expr, ops)
				}
			}
		}
	}
}

// TestCertificates: a bad certificate does not mend itself; asking for one and
// trying again is a fault of its own.
func TestCertificates(t *testing.T) {
	tests := []struct {
		name, body string
		want       bool
	}{
		{"As", `var bad x509.UnknownAuthorityError; return errors.As(err, &bad)`, true},
		{"type assertion", `_, bad := err.(x509.HostnameError); return bad`, true},
		{"says no to it", `_, bad := err.(x509.HostnameError); return !bad`, false},
		{"asks for nothing", `return err != nil`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, s := judge(t, "func f(err error) bool { "+tt.body+" }")
			if got := j.YesToCertificate(s.Fn); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			asks := false
			for v := range dataflow.Instrs[ssa.Value](s.Fn) {
				asks = asks || CertificateTest(v)
			}
			if want := strings.Contains(tt.body, "x509"); asks != want {
				t.Errorf("asks for a certificate: got %v, want %v", asks, want)
			}
		})
	}
}

// TestImplementers: a method of an interface fails as those kinds of it do that the
// package knows from its own module. That is a guess.
func TestImplementers(t *testing.T) {
	libraries := map[string]string{
		"example.com/client": "package client\ntype Client struct{}\nfunc (*Client) Fetch() error\ntype Other struct{}\nfunc (*Other) Send() error",
		"foreign.org/client": "package foreign\ntype Client struct{}\nfunc (*Client) Push() error",
	}
	p := ssatest.LoadWith(t, libraries, `package p
import ("example.com/client"; foreign "foreign.org/client")
var _ = client.Client{}
var _ = foreign.Client{}
type fetcher interface { Fetch() error }
type pusher interface { Push() error }
func f(c fetcher) error { if err := c.Fetch(); err != nil { return err }; return nil }
func g(c pusher) error { if err := c.Push(); err != nil { return err }; return nil }`)
	p.Pass.Module = &analysis.Module{Path: "example.com"}
	p.Pass.ImportObjectFact = func(o types.Object, f analysis.Fact) bool {
		*f.(*fact.Summary) = fact.Summary{Fails: codeset.Range(400, 599)}
		return o.Pkg() != p.Pass.Pkg && o.Name() != "Send"
	}
	known := fact.NewTable(p.Pass, p.Package, func(*fact.Scope, *fact.Summary) {})
	for name, want := range map[string]codeset.Set{"f": codeset.Range(400, 599), "g": {}} {
		e := New(known).newEval(known.Scope(p.Fn(t, name)), overHTTP)
		if s := e.results(0, e.null); s.no != want || e.guessed == want.Empty() {
			t.Errorf("%s fails for %v, guessed %v; want %v, guessed %v", name, s.no, e.guessed, want, !want.Empty())
		}
	}
}
