package retryloop

import (
	"slices"
	"testing"

	"github.com/forbear-go/forbear/lint/internal/fact"
)

// kinds are what the helpers below tell errors by.
const kinds = `
type final struct{ err error }
func (f *final) Error() string { return "" }
type failErr struct{ again bool }
func (f *failErr) Error() string { return "" }
var errStop = errors.New("stop")
func isFinal(err error) bool { var f *final; return errors.As(err, &f) }
func passing(err error) bool { if _, ok := err.(*final); ok { return false }; return true }
type task interface{ Do() error }
type options struct{ again func(error) bool }
func set(o *options, again func(error) bool) { o.again = again }
`

// TestRetriers: a helper says by its code what it calls again, how it waits and
// which errors end it.
func TestRetriers(t *testing.T) {
	tests := []struct {
		name, source string
		want         *fact.Retrier // without Spoken; nil for no helper
	}{
		{"waits its parameter", `func F(n int, every time.Duration, op func() error) { for ; n > 0; n-- { if op() == nil { return }; time.Sleep(every) } }`, &fact.Retrier{Param: 2, Delay: fact.Fixed, Every: 1}},
		{"waits a part of it", `func F(every time.Duration, op func() error) { for { if op() == nil { return }; time.Sleep(every / 2) } }`, &fact.Retrier{Param: 1, Every: -1}},
		{"doubles", `func F(d time.Duration, op func() error) { for { if op() == nil { return }; time.Sleep(d); d *= 2 } }`, &fact.Retrier{Param: 1, Delay: fact.Growing, Every: -1}},
		{"a method", `type t struct{}
func (t) F(op func() error) { for { if op() == nil { return }; time.Sleep(9) } }`, &fact.Retrier{Param: 1, Delay: fact.Fixed, Every: -1}},
		{"an interface", `func F(j task) { for { if j.Do() == nil { return }; time.Sleep(9) } }`, &fact.Retrier{Method: "Do", Delay: fact.Fixed, Every: -1}},
		{"a client", `func F(c interface{ Do(*http.Request) error }, r *http.Request) { for { if c.Do(r) == nil { return }; time.Sleep(9) } }`, nil},
		{"a captured parameter", `func F(op func() error) { defer func() { _ = op() }(); for { if op() == nil { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1}},
		{"ends by a type", `func F(op func() error) { for { err := op(); if err == nil || isFinal(err) { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"example.com/p.final"}}},
		{"ends by a variable", `func F(op func() error) { for { err := op(); if err == nil || err == errStop || errors.Is(err, io.EOF) { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"io.EOF", "example.com/p.errStop"}}},
		{"goes on by a type", `func F(op func() error) { for { err := op(); if err == nil || passing(err) { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Only: []string{"example.com/p.final"}}},
		{"ends by a bool", `func F(op func() (bool, error)) { for { again, err := op(); if err == nil || !again { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"#0=false"}}},
		{"ends by a field", `func F(op func() *failErr) { for { err := op(); if err == nil { return }; if !err.again { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Only: []string{"example.com/p.failErr.again=true"}}},
		{"accepts", `func F(retries int, op func() (bool, error)) { for { ok, err := op(); if ok || err != nil { return }; time.Sleep(9) } }`, &fact.Retrier{Contract: fact.UntilDone, Param: 1, Delay: fact.Fixed, Every: -1, Ends: []string{"#0", "error"}}},
		{"asks its parameter", `func F(op func() error, again func(error) bool) { for { err := op(); if err == nil || !again(err) { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Picky: true}},
		{"asks a setting with a default", `func F(op func() error) { o := &options{again: passing}; set(o, nil); for { err := op(); if err == nil || !o.again(err) { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"example.com/p.final"}}},
		{"over a helper", `func inner(d time.Duration, op func() error) { for { err := op(); if err == nil || isFinal(err) { return }; time.Sleep(d) } }
func F(op func() error) { inner(9, func() error { return op() }) }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"example.com/p.final"}}},
		{"over a helper, with errors of its own", `func inner(d time.Duration, op func() error) { for { err := op(); if err == nil || isFinal(err) { return }; time.Sleep(d) } }
func F(op func() error) { inner(9, func() error { if err := op(); err == io.EOF { return &final{err} } else { return err } }) }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Picky: true}},
		{"an adapted parameter", `func inner(op func() (int, error)) { for { if _, err := op(); err == nil { return }; time.Sleep(9) } }
func adapt(op func() error) func() (int, error) { return func() (int, error) { return 0, op() } }
func F(op func() error) { inner(adapt(op)) }`, &fact.Retrier{Delay: fact.Fixed, Every: -1}},
		{"over a helper that polls", `func inner(op func() (bool, error)) { for { ok, err := op(); if err != nil || ok { return }; time.Sleep(9) } }
func F(op func() (bool, error)) { inner(func() (bool, error) { return op() }) }`, &fact.Retrier{Contract: fact.UntilDone, Delay: fact.Fixed, Every: -1, Ends: []string{"error", "#0"}}},
		{"by a helper that polls", `func inner(op func() (bool, error)) { for { ok, err := op(); if err != nil || ok { return }; time.Sleep(9) } }
func F(op func() error) { inner(func() (bool, error) { if err := op(); passing(err) { return false, nil } else { return true, err } }) }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Picky: true}},
		{"waits by a helper that polls", `func inner(op func() (bool, error)) { for { ok, err := op(); if err != nil || ok { return }; time.Sleep(9) } }
func F(state func() (int, error)) { inner(func() (bool, error) { n, err := state(); return n > 0, err }) }`, nil},
		{"once", `func F(op func() error) { time.Sleep(9); op() }`, nil},
		{"retries until it is accepted", `func Retry(op func() (bool, error)) { for { ok, err := op(); if err != nil { return }; if ok { return }; time.Sleep(9) } }`, &fact.Retrier{Delay: fact.Fixed, Every: -1, Ends: []string{"error", "#0"}}},
		{"polls", `func F(op func() (bool, error)) { for { ok, err := op(); if err != nil || ok { return }; time.Sleep(9) } }`, &fact.Retrier{Contract: fact.UntilDone, Delay: fact.Fixed, Every: -1, Ends: []string{"error", "#0"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := result(t, kinds+tt.source)
			var got *fact.Retrier
			for _, fn := range r.Funcs {
				if fn.Name() == "F" || fn.Name() == "Retry" {
					got = r.Known.Local(fn).Retrier
				}
			}
			if got == nil || tt.want == nil {
				if got != tt.want {
					t.Fatalf("got %+v, want %+v", got, tt.want)
				}
				return
			}
			w := tt.want
			if got.Contract != w.Contract || got.Param != w.Param || got.Method != w.Method || got.Delay != w.Delay || got.Every != w.Every || got.Picky != w.Picky || !slices.Equal(got.Ends, w.Ends) || !slices.Equal(got.Only, w.Only) {
				t.Errorf("got %+v, want %+v", got, w)
			}
		})
	}
}

// TestMakes: which errors a function may return.
func TestMakes(t *testing.T) {
	for source, want := range map[string][]string{
		`func F(err error) error { return &final{err} }`: {"example.com/p.final"},
		`func F(err error) error { if err == nil { return nil }; return errors.Join(F2(err)) }
func F2(err error) error { return &final{err} }`: {"example.com/p.final"},
		`func F() error { return io.EOF }`:                                            {"io.EOF"},
		`func F() *failErr { return &failErr{again: true} }`:                          {"example.com/p.failErr", "example.com/p.failErr.again=true"},
		`func F() *failErr { return &failErr{} }`:                                     {"example.com/p.failErr", "example.com/p.failErr.again=false"},
		`func F(err error) error { return err }`:                                      nil,
		`func F(n int) error { if n > 1 { return F(n - 1) }; return errors.New("") }`: nil,
	} {
		r := result(t, kinds+source)
		for _, fn := range r.Funcs {
			if got := r.Known.Local(fn).Errors; fn.Name() == "F" && !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", source, got, want)
			}
		}
	}
}
