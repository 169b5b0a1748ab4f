//forbear:plain rules have no goroutines; package lint runs them at once
package send

import (
	"slices"
	"testing"

	"github.com/forbear-go/forbear/lint/internal/dataflow"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

const preamble = `package p
import ("errors"; "fmt"; "io"; "io/ioutil"; "net"; "net/http"; "os"; "strings")
type conn interface { Ping() error }
type pool interface { Do(f func() error) error; Each(f func(string) error) error; Submit(f func() error) error }
func newReq(method string) *http.Request { r, _ := http.NewRequest(method, "/", nil); return r }
func post() { http.Post("", "", nil) }
func save() error { return os.WriteFile("", nil, 0) }
func add(a, b int) int { return a + b }
func notify(ch chan int) { ch <- 1 }
`

// scope returns the scope of the function f of a source. Of the others it is
// known what they send and where they go.
func scope(t *testing.T, src string) *fact.Scope {
	t.Helper()
	p := ssatest.Load(t, preamble+src)
	var known *fact.Table
	known = fact.NewTable(p.Pass, p.Package, func(s *fact.Scope, sum *fact.Summary) {
		for c := range dataflow.Instrs[*ssa.Call](s.Fn) {
			Effects(known, c, MentionsKey(s.Fn), sum)
		}
	})
	return known.Scope(p.Fn(t, "f"))
}

// last returns the last call in a function.
func last(t *testing.T, s *fact.Scope) (call *ssa.Call) {
	t.Helper()
	for c := range dataflow.Instrs[*ssa.Call](s.Fn) {
		call = c
	}
	if call == nil {
		t.Fatal("the source calls nothing")
	}
	return call
}

// TestBoundaryOf: where a call goes, by its package or by what the function
// behind it does.
func TestBoundaryOf(t *testing.T) {
	tests := []struct {
		call string
		want Boundary
	}{
		{`http.Get("")`, Remote},
		{`net.Dial("tcp", "")`, Remote},
		{`net.Dial("unix", "")`, Local},
		{`net.LookupHost("")`, Remote},
		{`net.ParseIP("")`, Unknown},
		{`os.ReadFile("")`, Local},
		{`c.Ping()`, Unknown},
		{`fn()`, Unknown},
		{`post()`, Remote},
		{`save()`, Local},
		{`add(1, 2)`, Local},
		{`notify(nil)`, Unknown},
		{`ioutil.ReadFile("")`, Local},
		{`ioutil.ReadAll(nil)`, Unknown},
		{`p.Do(func() error { _, err := http.Get(""); return err })`, Remote},
		{`p.Do(func() error { return os.Remove("") })`, Local},
		{`p.Do(func() error { fn(); return os.Remove("") })`, Unknown},
		{`p.Do(func() error { return nil })`, Unknown},
		{`p.Each(func(name string) error { return os.Remove(name) })`, Unknown},
		{`p.Submit(func() error { _, err := http.Get(""); return err })`, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.call, func(t *testing.T) {
			s := scope(t, "func f(c conn, p pool, fn func()) { "+tt.call+" }")
			if got := BoundaryOf(s.Known, last(t, s).Common()); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestIgnored: the failure of a computation does not pass with time, so no
// retry is about it.
func TestIgnored(t *testing.T) {
	tests := []struct {
		call string
		want bool
	}{
		{`fmt.Sscan("", &n)`, true},
		{`io.ReadAll(nil)`, true},
		{`errors.Join(nil)`, true},
		{`r.Close()`, true},
		{`os.ReadFile("")`, false},
		{`http.Get("")`, false},
		{`c.Ping()`, false},
	}
	for _, tt := range tests {
		s := scope(t, "func f(c conn, r io.Closer, n int) { "+tt.call+" }")
		if got := Ignored(last(t, s).Common()); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.call, got, tt.want)
		}
	}
}

// TestOf: what counts as a request, and which method it has.
func TestOf(t *testing.T) {
	post := fact.Send{Method: "POST", Param: -1}
	tests := []struct {
		name, body string
		want       []fact.Send
	}{
		{"post of the client", `http.Post("", "", nil)`, []fact.Send{post}},
		{"get", `http.Get("")`, nil},
		{"request made before", `r, _ := http.NewRequest("POST", "", nil); http.DefaultClient.Do(r)`, []fact.Send{post}},
		{"request with a context", `r, _ := http.NewRequestWithContext(nil, "post", "", nil); http.DefaultClient.Do(r)`, []fact.Send{post}},
		{"no method is GET", `r, _ := http.NewRequest("", "", nil); http.DefaultClient.Do(r)`, []fact.Send{{Method: "GET", Param: -1}}},
		{"request in place", `http.DefaultClient.Do(&http.Request{Method: "POST"})`, []fact.Send{post}},
		{"copy of a request", `r, _ := http.NewRequest("POST", "", nil); http.DefaultClient.Do(r.WithContext(nil))`, []fact.Send{post}},
		{"method from a parameter", `r, _ := http.NewRequest(method, "", nil); http.DefaultClient.Do(r)`, []fact.Send{{Param: 0}}},
		{"method handed to a helper", `http.DefaultClient.Do(newReq("POST"))`, []fact.Send{{Method: "POST", Param: -1, Depth: 1}}},
		{"through a helper", `post()`, []fact.Send{{Method: "POST", Param: -1, Depth: 1}}},
		{"carried out by a handler", `var h http.Handler; h.ServeHTTP(nil, &http.Request{Method: "POST"})`, []fact.Send{post}},
		{"answered", `var serve func(http.ResponseWriter, *http.Request) error; serve(nil, &http.Request{Method: "POST"})`, nil},
		{"no request", `strings.ToUpper(method)`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, "func f(method string) { "+tt.body+" }")
			if got := Of(s, []*ssa.Call{last(t, s)}); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestKeyed: a function carries an idempotency key when it names one, in a
// header, in a field, in what it calls, or in what surrounds it.
func TestKeyed(t *testing.T) {
	tests := []struct {
		name, source string
		want         bool
	}{
		{"header", `func f(h http.Header) { h.Set("Idempotency-Key", "1") }`, true},
		{"field", `type o struct { IdempotencyKey string }; func f(v *o) { v.IdempotencyKey = "1" }`, true},
		{"callee", `func withIdempotency() {}; func f() { withIdempotency() }`, true},
		{"question", `func isIdempotent(m string) bool { return m == "GET" }; func f(m string) { if isIdempotent(m) { println() } }`, false},
		{"flag", `type o struct { Idempotent bool }; func f(v *o) { if v.Idempotent { println() } }`, false},
		{"another header", `func f(h http.Header) { h.Set("Authorization", "1") }`, false},
		{"header of a user's own", `func f(h http.Header) { h.Set("X-Request-Token", "1") }`, true},
	}
	config.Set(&config.Settings{KeyHeaders: []string{"X-Request-Token"}})
	t.Cleanup(func() { config.Set(nil) })
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Keyed(scope(t, tt.source).Fn); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	inner := scope(t, `func f(h http.Header) { h.Set("Idempotency-Key", "1"); func() { println() }() }`).Fn.AnonFuncs[0]
	if !Keyed(inner) || MentionsKey(inner) {
		t.Error("a literal is keyed by the function around it, and mentions no key itself")
	}
	if config.Set(nil); IsKeyName("X-Request-Token") || !IsKeyName("X-Idempotency-Key") {
		t.Error("names that were taken back still count, or the field's own do not")
	}
}

// TestSendsAreKeyed: a key that a helper sets goes with its request, and so
// does one of its caller.
func TestSendsAreKeyed(t *testing.T) {
	for name, source := range map[string]string{
		"by the helper": `func keyed() { h := http.Header{}; h.Set("Idempotency-Key", "1"); http.Post("", "", nil) }; func f() { keyed() }`,
		"by the caller": `func f() { func() { h := http.Header{}; h.Set("Idempotency-Key", "1"); post() }() }`,
	} {
		s := scope(t, source)
		if got := Of(s, []*ssa.Call{last(t, s)}); len(got) != 1 || !got[0].Keyed {
			t.Errorf("%s: got %+v, want one request with a key", name, got)
		}
	}
}

func TestReadOnlyName(t *testing.T) {
	for source, want := range map[string]bool{
		`func f() { http.Post("/graphql", "", nil) }`: true,
		`func f() { http.Post("/orders", "", nil) }`:  false,
		`func f() { fmt.Sscan("find it") }`:           false,
	} {
		if got := ReadOnlyName(scope(t, source).Fn); got != want {
			t.Errorf("%s: got %v, want %v", source, got, want)
		}
	}
	if p := ssatest.Load(t, "package p\nfunc searchOrders() {}"); !ReadOnlyName(p.Fn(t, "searchOrders")) {
		t.Error("searchOrders: got false, want true")
	}
}
