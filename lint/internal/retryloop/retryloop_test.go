//forbear:plain rules have no goroutines; package lint runs them at once
package retryloop

import (
	"go/types"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

const preamble = `package p
import ("context"; "crypto/x509"; "errors"; "io"; "log"; "net/http"; "os"; "strings"; "time")
type client struct { http *http.Client }
func (c *client) send(ctx context.Context, body string) error { _, err := http.Post("", "", strings.NewReader(body)); return err }
func (c *client) ready() bool
func (c *client) next() (string, error)
func call() error { _, err := http.Get(""); return err }
func perform() bool { return call() == nil }
func callOK() bool { return call() == nil }
func postAll() bool { r, _ := http.Get(""); return r != nil }
func read(b []byte) error
func lookup() (*http.Response, error)
func temporary(err error) bool
func delay() { time.Sleep(time.Second) }
`

// result analyzes a source.
func result(t *testing.T, src string) *Result {
	t.Helper()
	return ssatest.Load(t, preamble+src).Run(t, Analyzer).(*Result)
}

// region returns the only region of a body of the function f; nil when there
// is none.
func region(t *testing.T, body string) *Region {
	t.Helper()
	r := result(t, "func f(ctx context.Context, c *client, list []string, n int, op func() error) (err error) {\n"+body+"\nreturn err\n}")
	switch len(r.Regions) {
	case 0:
		return nil
	case 1:
		return r.Regions[0]
	}
	t.Fatalf("got %d regions, want one at most", len(r.Regions))
	return nil
}

// TestIsRetry: what is entered again because a call failed, and what is
// entered again for another reason.
func TestIsRetry(t *testing.T) {
	tests := []struct {
		name, body string
		want       bool
	}{
		{"until it works", `for { if err = call(); err == nil { return nil }; time.Sleep(1) }`, true},
		{"a few times", `for range 3 { if err = call(); err == nil { break }; time.Sleep(1) }`, true},
		{"while it fails", `for err = call(); err != nil; err = call() { time.Sleep(1) }`, true},
		{"by goto", `again: if err = call(); err != nil { time.Sleep(1); goto again }`, true},
		{"when a predicate says so", `for { if err = call(); !temporary(err) { return err }; time.Sleep(1) }`, true},
		{"on a status", `for { resp, _ := lookup(); if resp.StatusCode == 200 { return nil }; time.Sleep(1) }`, true},
		{"without a wait, by its word", `for attempt := range 5 { _ = attempt; if err = call(); err == nil { return nil } }`, true},
		{"without a wait, in silence", `for range 5 { if err = call(); err == nil { return nil } }`, false},
		{"without a wait, two candidates", `for attempt := range 2 { _ = attempt; if err = call(); err == nil { return nil } }`, false},
		{"the failure leaves", `for { if err = call(); err != nil { return err }; time.Sleep(1) }`, false},
		{"success and failure meet in the wait", `for { if err = call(); err != nil { log.Print(err) }; time.Sleep(1) }`, false},
		{"each turn another item", `for _, s := range list { if err = c.send(ctx, s); err == nil { return nil }; time.Sleep(1) }`, false},
		{"a read of a body", `for { if _, err = io.ReadAll(nil); err == nil { return nil }; time.Sleep(1) }`, false},
		{"a bool that asks for a state", `for { if c.ready() { return nil }; time.Sleep(1) }`, false},
		{"a bool that says whether it worked", `for attempt := range 5 { _ = attempt; if callOK() { return nil }; time.Sleep(1) }`, true},
		{"a bool by its body", `for attempt := range 5 { _ = attempt; if perform() { return nil }; time.Sleep(1) }`, true},
		{"the program ends", `for { if err = call(); err != nil { log.Fatal(err) }; time.Sleep(1) }`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := region(t, tt.body); (got != nil) != tt.want {
				t.Errorf("got a region %v, want %v", got != nil, tt.want)
			}
		})
	}
}

// TestConsumer: a loop that goes on after a success is a region when only a
// failure waits in it.
func TestConsumer(t *testing.T) {
	r := region(t, `for { if err = op(); err != nil { time.Sleep(1); continue }; log.Print("done") }`)
	if r == nil || r.Pure || r.retrier() == nil || len(r.Waits) != 1 {
		t.Fatalf("got %+v, want a region of a callback that goes on after success", r)
	}
}

// TestProperties: what a region is said to be, and by which of its parts.
func TestProperties(t *testing.T) {
	tests := []struct {
		name, body string
		holds      func(*Region) bool
		want       bool
	}{
		{"pure", `for { if err = call(); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Pure }, true},
		{"remote", `for { if err = call(); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Boundary == send.Remote }, true},
		{"local", `for { if err = os.Remove(""); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Boundary == send.Local }, true},
		{"spoken by a variable", `for retries := 0; ; retries++ { if err = call(); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Spoken }, true},
		{"spoken by the name of a wait", `const errorDelay = 1; for { if err = call(); err == nil { return nil }; time.Sleep(errorDelay) }`, func(r *Region) bool { return r.Spoken }, true},
		{"spoken by the time of a wait", `const sleepOnFailure = 1; for { if err = call(); err == nil { return nil }; time.Sleep(sleepOnFailure) }`, func(r *Region) bool { return r.Spoken }, true},
		{"an error of waiting", `var waitErr error; for { if err = call(); err == nil { return waitErr }; time.Sleep(1) }`, func(r *Region) bool { return r.Spoken }, false},
		{"numbers its attempts", `for n := 0; ; n++ { if err = call(); err == nil { return nil }; log.Print(n); time.Sleep(1) }`, (*Region).Counts, true},
		{"counts some of its turns", `n := 0; for { if err = call(); err == nil { return nil }; if err == io.EOF { n++ }; log.Print(n); time.Sleep(1) }`, (*Region).Counts, false},
		{"counts what it has done", `for n := 0; ; n++ { if err = call(); err != nil { time.Sleep(1); continue }; log.Print(n) }`, (*Region).Counts, false},
		{"spoken by a text", `for { if err = call(); err == nil { return nil }; log.Print("trying again"); time.Sleep(1) }`, func(r *Region) bool { return r.Spoken }, false},
		{"waits for a state, by a text", `for { if err = call(); err == nil { return nil }; log.Print("not ready"); time.Sleep(1) }`, func(r *Region) bool { return r.Waiting }, true},
		{"waits first", `for { time.Sleep(1); if err = call(); err == nil { return nil } }`, func(r *Region) bool { return r.WaitFirst }, true},
		{"attempts first", `for { if err = call(); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.WaitFirst }, false},
		{"fixed wait of a helper", `for { if err = call(); err == nil { return nil }; delay() }`, func(r *Region) bool { return r.Delay.Class == fact.Fixed }, true},
		{"bounded", `for range 3 { if err = call(); err == nil { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Bound.Limit == 3 }, true},
		{"weak", `for attempt := range 5 { _ = attempt; if postAll() { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Weak }, true},
		{"proved", `for attempt := range 5 { _ = attempt; if callOK() { return nil }; time.Sleep(1) }`, func(r *Region) bool { return r.Weak }, false},
		{"waits after the last", `for range 3 { if err = call(); err == nil { return nil }; time.Sleep(1) }`, (*Region).CheckedLate, true},
		{"stops before the last wait", `for i := 0; ; i++ { if err = call(); err == nil || i > 2 { return err }; time.Sleep(1) }`, (*Region).CheckedLate, false},
		{"looks at the counter twice", `for i := 0; i < 3; i++ { if err = call(); err == nil || i == 2 { return err }; time.Sleep(1) }`, (*Region).CheckedLate, false},
		{"looks at the error", `for { if err = call(); err == nil || errors.Is(err, io.EOF) { return nil }; time.Sleep(1) }`, (*Region).InspectsError, true},
		{"looks at no error", `for { if err = call(); err == nil { return nil }; time.Sleep(1) }`, (*Region).InspectsError, false},
		{"on a status", `for { resp, _ := lookup(); if resp.StatusCode == 200 { return nil }; time.Sleep(1) }`, (*Region).OnStatus, true},
		{"only what was refused", `for { resp, _ := lookup(); if resp.StatusCode == 429 { time.Sleep(1); continue }; return nil }`, (*Region).Harmless, true},
		{"more than what was refused", `for { resp, _ := lookup(); if resp.StatusCode < 429 { return nil }; time.Sleep(1) }`, (*Region).Harmless, false},
		{"on a certificate", `for { err = call(); if _, bad := err.(x509.HostnameError); !bad { return err }; time.Sleep(1) }`, (*Region).OnCertificateError, true},
		{"the body decides", `for { resp, _ := lookup(); if resp.StatusCode < 500 || resp.ContentLength > 3 { return nil }; time.Sleep(1) }`, func(r *Region) bool { return !r.Doubtful(codeset.Of(503), false).Empty() }, true},
		{"a counter decides", `for i := 0; ; i++ { resp, _ := lookup(); if resp.StatusCode < 500 || i > 3 { return nil }; time.Sleep(1) }`, func(r *Region) bool { return !r.Doubtful(codeset.Of(503), false).Empty() }, false},
		{"a clock decides", `for t := time.Now(); ; { resp, _ := lookup(); if resp.StatusCode < 500 || time.Since(t) > 9 { return nil }; time.Sleep(1) }`, func(r *Region) bool { return !r.Doubtful(codeset.Of(503), false).Empty() }, false},
		{"reads only", `for { if err = c.search(); err == nil { return nil }; time.Sleep(1) }}; func (c *client) search() error { return call() }; func g() (err error) {`, (*Region).ReadOnly, true},
		{"mentions a header", `for { if err = call(); err == nil { return nil }; log.Print("Retry-After"); time.Sleep(1) }`, func(r *Region) bool { return r.Mentions(regexp.MustCompile("Retry-After")) }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := region(t, tt.body)
			if r == nil {
				t.Fatal("got no region")
			}
			if got := tt.holds(r); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRecursion: a function that calls itself after a failure and a wait is a
// retry without a loop.
func TestRecursion(t *testing.T) {
	tests := []struct {
		name, source string
		regions      int
		counts       bool
		class        fact.Class
	}{
		{"fixed wait", `func f() error { err := call(); if err != nil { time.Sleep(9); return f() }; return nil }`, 1, false, fact.Fixed},
		{"counts", `func f(n int) error { err := call(); if err != nil { time.Sleep(9); return f(n - 1) }; return nil }`, 1, true, fact.Fixed},
		{"grows", `func f(d time.Duration) error { err := call(); if err != nil { time.Sleep(d); return f(2 * d) }; return nil }`, 1, false, fact.Growing},
		{"no wait", `func f() error { err := call(); if err != nil { return f() }; return nil }`, 0, false, 0},
		{"after success", `func f() error { err := call(); if err == nil { time.Sleep(9); return f() }; return err }`, 0, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := result(t, tt.source)
			if len(r.Regions) != tt.regions {
				t.Fatalf("got %d regions, want %d", len(r.Regions), tt.regions)
			}
			if tt.regions > 0 && (r.Regions[0].Bound.Counter != tt.counts || r.Regions[0].Delay.Class != tt.class) {
				t.Errorf("got counted %v, class %d; want %v, %d", r.Regions[0].Bound.Counter, r.Regions[0].Delay.Class, tt.counts, tt.class)
			}
		})
	}
}

// TestSummaries: what callers learn of a function.
func TestSummaries(t *testing.T) {
	r := result(t, `
func Wait(d time.Duration) { time.Sleep(d) }
func Again(op func() error) (err error) { for range 4 { if err = op(); err == nil { return nil }; time.Sleep(1) }; return err }
func Check(resp *http.Response) error { if resp.StatusCode == 404 { return errors.New("") }; return nil }
func Post(method string) (err error) {
	for range 3 {
		r, _ := http.NewRequest(method, "", nil)
		if _, err = http.DefaultClient.Do(r); err == nil { return nil }
		time.Sleep(1)
	}
	return err
}
func nothing() {}`)
	sums := map[string]*fact.Summary{}
	for _, fn := range r.Funcs {
		sums[fn.Name()] = r.Known.Local(fn)
	}
	if w := sums["Wait"].Wait; w == nil || w.Param != 0 || !w.Bare {
		t.Errorf("Wait: got %+v, want a bare wait for parameter 0", w)
	}
	if s := sums["Again"]; s.Retrier == nil || !s.Retries || s.Attempts != 4 {
		t.Errorf("Again: got %+v, want one that calls its parameter up to 4 times", s)
	}
	if s := sums["Check"]; s.Fails != codeset.Of(404) {
		t.Errorf("Check: got %v, want an error for 404 alone", s.Fails)
	}
	if s := sums["Post"]; len(s.Retried) != 1 || s.Retried[0].Param != 0 || !s.Remote {
		t.Errorf("Post: got %+v, want it to retry the method of parameter 0", s)
	}
	if !sums["nothing"].Empty() {
		t.Errorf("nothing: got %v, want the empty summary", sums["nothing"])
	}
}

// TestCallbacks: what is handed to a helper that calls it again.
func TestCallbacks(t *testing.T) {
	r := result(t, `
func Again(op func() error) (err error) { for range 4 { if err = op(); err == nil || errors.Is(err, io.EOF) { return err }; time.Sleep(1) }; return err }
func Post(method string) (err error) { for range 3 { r, _ := http.NewRequest(method, "", nil); if _, err = http.DefaultClient.Do(r); err == nil { return nil }; time.Sleep(1) }; return err }
func Some(op func() error, again func(error) bool) (err error) { for range 4 { if err = op(); err == nil || !again(err) { return err }; time.Sleep(1) }; return err }
func Once(op func() error) error { return op() }
func f() { Again(call); Some(call, nil); Once(call); Post("PUT"); Again(func() error { return nil }) }`)
	var f *ssa.Function
	for _, fn := range r.Funcs {
		if fn.Name() == "f" {
			f = fn
		}
	}
	again := ssatest.Calls(f, "Again")
	if fn := r.retriedCallback(again[0]); fn == nil || fn.Name() != "call" {
		t.Errorf("got %v, want call", fn)
	}
	if fn := r.retriedCallback(again[1]); fn == nil || fn.Parent() != f {
		t.Errorf("got %v, want the literal", fn)
	}
	if fn := r.retriedCallback(ssatest.Call(t, f, "Once")); fn != nil {
		t.Errorf("got %v, want none: it is called once", fn)
	}
	var open *Repeat
	for _, rep := range r.Repeats() {
		if rep.Fn.Name() == "Post" {
			open = rep
		}
	}
	if open == nil || len(open.Sends) != 1 || !open.Sends[0].Open() {
		t.Fatalf("got %+v, want the region of Post with a method of its caller's", open)
	}
	if c, beyond := r.Callers(open, open.Sends[0]); len(c) != 1 || c[0].Send.Method != "PUT" || len(beyond) != 1 {
		t.Errorf("got %+v, %v; want PUT by f, and callers in other packages", c, beyond)
	}
	if r.Selective(again[0]) || !r.Selective(ssatest.Call(t, f, "Some")) || r.Selective(ssatest.Call(t, f, "Once")) {
		t.Error("Again ends at a known error, Some asks what is not known, and Once nothing: want false, true and false")
	}
}

// TestTurns: where in a region an instruction stands.
func TestTurns(t *testing.T) {
	r := region(t, `for { if err = call(); err == nil { log.Print("ok"); return nil }; log.Print("failed"); time.Sleep(1) }`)
	prints := ssatest.Calls(r.Fn, "Print")
	slices.SortFunc(prints, func(a, b *ssa.Call) int { return int(a.Pos() - b.Pos()) })
	ok, failed := prints[0], prints[1]
	if r.Contains(ok) || !r.Contains(failed) {
		t.Errorf("inside: got %v and %v, want false and true", r.Contains(ok), r.Contains(failed))
	}
	if r.Again(ok) || !r.Again(failed) {
		t.Errorf("another attempt: got %v and %v, want false and true", r.Again(ok), r.Again(failed))
	}
	if r.InFailedTurn(ok) || !r.InFailedTurn(failed) {
		t.Errorf("in a turn that fails: got %v and %v, want false and true", r.InFailedTurn(ok), r.InFailedTurn(failed))
	}
}

// TestExport: callers in other packages learn of exported functions that do
// something.
func TestExport(t *testing.T) {
	p := ssatest.Load(t, preamble+"func Exported() { call() }\nfunc hidden() { call() }\nfunc Idle() {}")
	p.Run(t, Analyzer)
	var names []string
	for _, f := range p.Pass.AllObjectFacts() {
		if fn, ok := f.Object.(*types.Func); ok {
			if _, ours := f.Fact.(*fact.Summary); ours {
				names = append(names, fn.Name())
			}
		}
	}
	if !slices.Equal(names, []string{"Exported"}) {
		t.Errorf("got facts about %v, want Exported alone", names)
	}
}

// TestKnownLibraries: clients and helpers that retry by themselves.
func TestKnownLibraries(t *testing.T) {
	p := ssatest.LoadWith(t, map[string]string{
		"github.com/minio/minio-go":     "package minio\nfunc Put(name string)",
		"github.com/avast/retry-go/v4":  "package retry\nfunc Do(func() error, ...int) error\nfunc RetryIf(func(error) bool) int",
		"github.com/sethvargo/go-retry": "package retry\nfunc Do(func() error) error",
	}, `package p
import ("github.com/minio/minio-go"; avast "github.com/avast/retry-go/v4"; seth "github.com/sethvargo/go-retry")
func op() error
func f() { minio.Put(""); avast.Do(op, avast.RetryIf(nil)); op() }
func g() { seth.Do(op) }`)
	r := p.Run(t, Analyzer).(*Result)
	f := p.Fn(t, "f")
	if n, ok := RetryingSDK(ssatest.Call(t, f, "Put").Common()); !ok || n != 10 {
		t.Errorf("minio: got %d, %v; want 10 attempts", n, ok)
	}
	if _, ok := RetryingSDK(ssatest.Call(t, f, "op").Common()); ok {
		t.Error("op: got a client that retries, want none")
	}
	if !r.Selective(ssatest.Call(t, f, "Do")) || r.Selective(ssatest.Call(t, p.Fn(t, "g"), "Do")) {
		t.Error("a call with RetryIf, and one without: want selective and not")
	}
}
