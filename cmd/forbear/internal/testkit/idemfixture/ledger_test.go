package idemfixture

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// ledger is what survives the fixture: effects, executions, and where handlers
// have stopped.
type ledger struct {
	url string

	mu         sync.Mutex
	executions map[string]int // by principal and key
	controls   map[string]map[string]string
	effects    map[string]int // by principal
	numbers    map[string]int // by counter
	events     map[string]chan struct{}
	resumes    map[string]chan struct{}
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{
		executions: map[string]int{}, controls: map[string]map[string]string{}, effects: map[string]int{}, numbers: map[string]int{},
		events: map[string]chan struct{}{}, resumes: map[string]chan struct{}{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /begin", l.begin)
	mux.HandleFunc("POST /effect", l.effect)
	mux.HandleFunc("POST /stop", l.stop)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	l.url = srv.URL
	return l
}

// signal returns the channel of an event.
func (l *ledger) signal(m map[string]chan struct{}, name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m[name] == nil {
		m[name] = make(chan struct{})
	}
	return m[name]
}

// raise makes an event happen, once.
func (l *ledger) raise(m map[string]chan struct{}, name string) {
	c := l.signal(m, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func (l *ledger) await(t *testing.T, event string) {
	t.Helper()
	select {
	case <-l.signal(l.events, event):
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen", event)
	}
}

func (l *ledger) begin(w http.ResponseWriter, r *http.Request) {
	var b Begin
	if json.NewDecoder(r.Body).Decode(&b) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.raise(l.events, "handler_started:"+b.Request)
	key := b.Principal + " " + b.Key
	l.mu.Lock()
	l.executions[key]++
	if len(b.Controls) == 0 && l.controls[key] != nil {
		// A retry uses the sequences given first; it neither stops nor delays.
		b.Controls = map[string]string{}
		for name, v := range l.controls[key] {
			if name != "Stop-At" && name != "Delay-Ms" {
				b.Controls[name] = v
			}
		}
	} else if l.controls[key] == nil {
		l.controls[key] = b.Controls
	}
	answer := Begun{Execution: l.executions[key], Controls: b.Controls}
	l.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
}

func (l *ledger) effect(w http.ResponseWriter, r *http.Request) {
	var e Effect
	if json.NewDecoder(r.Body).Decode(&e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.numbers[e.Counter]++
	n := l.numbers[e.Counter]
	if e.Count {
		l.effects[e.Principal]++
	}
	l.mu.Unlock()
	_ = json.NewEncoder(w).Encode(Number{n})
}

func (l *ledger) stop(w http.ResponseWriter, r *http.Request) {
	var s Stop
	if json.NewDecoder(r.Body).Decode(&s) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.raise(l.events, "stopped:"+s.Request)
	select {
	case <-l.signal(l.resumes, s.Request):
		_ = json.NewEncoder(w).Encode(Number{})
	case <-r.Context().Done():
	}
}

func (l *ledger) count() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := map[string]int{}
	maps.Copy(c, l.effects)
	return c
}
