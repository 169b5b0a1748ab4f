//forbear:plain rules have no goroutines; package lint runs them at once
package delay

import "testing"

// TestDeferred: a wait that is drawn now and kept for a later attempt is judged
// where it is drawn.
func TestDeferred(t *testing.T) {
	tests := []struct {
		name, body string
		want       int
	}{
		{"handed to a store", `st.Put(d/2 + rand.N(d/2))`, 1},
		{"time of the next attempt", `_ = time.Now().Add(d/2 + rand.N(d/2))`, 1},
		{"kept in a field", `r.wait = d/2 + rand.N(d/2)`, 1},
		{"called by its half", `st.Put(d + rand.N(d))`, 1},
		{"to a ceiling", `st.Put(min(d/2+rand.N(d/2), time.Hour))`, 1},
		{"by a power", `p := time.Duration(math.Pow(2, float64(n))); st.Put(p/2 + rand.N(p/2))`, 1},
		{"full jitter", `st.Put(rand.N(d))`, 0},
		{"a tenth", `st.Put(d + rand.N(d/10))`, 0},
		{"a period", `st.Put(r.wait/2 + rand.N(r.wait/2))`, 0},
		{"slept", `time.Sleep(d/2 + rand.N(d/2))`, 0},
		{"slept by a helper", `rest(d/2 + rand.N(d/2))`, 0},
		{"logged", `slog.Info("", slog.Duration("", d/2+rand.N(d/2)))`, 0},
		{"a timer", `<-time.After(d/2 + rand.N(d/2))`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, `package p
import ("log/slog"; "math"; "math/rand/v2"; "time")
type store interface { Put(time.Duration) }
type record struct { wait time.Duration }
func rest(d time.Duration) { time.Sleep(d) }
func f(st store, r *record, n int) {
	d := min(time.Second<<n, time.Hour)
	`+tt.body+`
}`)
			if got := Deferred(s); len(got) != tt.want {
				t.Errorf("got %d, want %d", len(got), tt.want)
			}
		})
	}
}
