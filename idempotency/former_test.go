package idempotency_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// What an earlier version has stored without a place is never done a second time: it is
// replayed where it can only be the same, and else held.
func TestFormerRecords(t *testing.T) {
	const principal = "ann"
	for _, tt := range []struct {
		name   string
		status int    // of the earlier run; 0 is one that goes on
		later  string // another body
		after  time.Duration
		sure   bool
		want   string // status and whether replayed, of each of two requests
		runs   int    // of both
	}{
		{"done", 201, "", 0, true, "201 true, 201 true", 0},
		{"done, by anyone", 201, "", 0, false, "409 false, 409 false", 0},
		{"done, but for something else", 201, "other", 0, true, "201 false, 201 true", 1},
		{"done long ago", 201, "", 49 * time.Hour, true, "201 false, 201 true", 1},
		{"failed", 503, "", 0, true, "201 false, 201 true", 1},
		{"nobody knows", 504, "", 0, true, "409 false, 409 false", 0},
		{"under way", 0, "", 0, true, "409 false, 409 false", 0},
		{"under way once", 0, "", time.Hour, true, "409 false, 409 false", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ahead atomic.Int64
			store := &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
			o := idempotency.Options{
				Scope: func(*http.Request) (string, error) { return principal, nil }, Logger: slog.New(slog.DiscardHandler), Wait: -1,
				Disposition: func(status int) idempotency.Disposition {
					if status == 504 {
						return idempotency.Hold
					}
					return idempotency.DefaultDisposition(status)
				},
			}
			post := func(h http.Handler, body string) string {
				r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
				r.Header.Set("Idempotency-Key", "order-4711")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return fmt.Sprintf("%d %v", w.Code, w.Header().Get("Idempotent-Replayed") == "true")
			}
			handler := func(o idempotency.Options, f http.HandlerFunc) http.Handler {
				h, err := idempotency.Handler(store, o, f)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			status, begun, end, ended := tt.status, make(chan struct{}), make(chan struct{}), make(chan struct{})
			before := handler(o, func(w http.ResponseWriter, _ *http.Request) {
				close(begun)
				if status == 0 {
					<-end
					return
				}
				w.WriteHeader(status)
			})
			go func() { defer close(ended); post(before, "{}") }()
			if <-begun; status != 0 {
				<-ended
			}
			ahead.Store(int64(tt.after))

			runs := 0
			o.Place = func(*http.Request) string { return "payments/shop.example/orders" }
			o.Former = func(scope string) (string, bool) { return scope, tt.sure }
			after := handler(o, func(w http.ResponseWriter, _ *http.Request) { runs++; w.WriteHeader(201) })
			body := "{}" + tt.later
			if got := post(after, body) + ", " + post(after, body); got != tt.want || runs != tt.runs {
				t.Errorf("got %s after %d runs, want %s after %d", got, runs, tt.want, tt.runs)
			}
			close(end)
			<-ended
		})
	}
}

// A key is found however its header is spelled in the map of a program; two lines are two.
func TestKeyIsFoundInEachSpelling(t *testing.T) {
	runs := 0
	h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{
		Scope: idempotency.SingleTenant(), Optional: true, Logger: slog.New(slog.DiscardHandler),
	}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { runs++; fmt.Fprint(w, runs) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]http.Header{
		"lower case":  {"idempotency-key": {"k"}},
		"upper case":  {"IDEMPOTENCY-KEY": {"k"}},
		"as it is":    {"Idempotency-Key": {"k"}},
		"both":        {"Idempotency-Key": {"k"}, "idempotency-key": {"k"}},
		"another one": {"Idempotency_key": {"k"}},
	} {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch got := fmt.Sprint(w.Code, " ", w.Body); {
		case name == "both" && w.Code != http.StatusBadRequest:
			t.Errorf("%s: %s", name, got)
		case name == "another one" && w.Header().Get("Idempotent-Replayed") != "":
			t.Errorf("%s: %s", name, got)
		case name != "both" && w.Code != http.StatusOK:
			t.Errorf("%s: %s", name, got)
		}
	}
	if runs != 2 { // of the key, and of the request that has none
		t.Errorf("%d runs, want 2", runs)
	}
}
