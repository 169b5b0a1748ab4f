package dispatch_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// The letter of a delivery says why: the last error, redacted, its types, each
// attempt, and the message's trace.
func TestDeadLetterSaysWhy(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		n := 0
		d := run(t, s, dispatch.Config{Poll: time.Minute, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			n++
			return nil, fmt.Errorf("try %d through http://u:planted@proxy?planted: %w", n, errors.ErrUnsupported)
		})}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		if _, err := d.Accept(t.Context(), webhook.Message{
			ID: "m", Endpoints: []string{"a"}, Body: []byte(`{}`),
			Headers: []webhook.Header{{Name: "Traceparent", Value: "00-" + trace + "-b7ad6b7169203331-01"}},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		list, err := s.List(t.Context(), queue.Filter{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%d letters, %v", len(list), err)
		}
		l := list[0]
		if want := fmt.Sprintf("try %d through http://[redacted]@proxy?[redacted] unsupported operation", n); l.Error != want || l.TraceID != trace || l.Cause != l.Fingerprint() {
			t.Errorf("got %+v, want %q", l, want)
		}
		if len(l.Chain) == 0 || l.Chain[len(l.Chain)-1] != "*errors.errorString" || len(l.History) != n {
			t.Errorf("%d attempts, %v, %+v", n, l.Chain, l.History)
		}
		for i, a := range l.History {
			if !strings.HasPrefix(a.Error, fmt.Sprintf("try %d through", i+1)) || a.Class == "" || a.ErrorType == "" || strings.Contains(a.Error, "planted") {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
	})
}
