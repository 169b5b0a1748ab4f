package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each delivery of a webhook is a span below the one that submitted the message, and
// what the receiver sees is that span.
func TestDeliveriesContinueTheTrace(t *testing.T) {
	const trace, submitter = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	c := newCollector(t)
	c.export(t)
	var mu sync.Mutex
	var seen []string
	stopping := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Traceparent"))
		first := len(seen) == 1
		mu.Unlock()
		if first {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			<-stopping // its span ends after the gateway's last call
		}
	}))
	t.Cleanup(receiver.Close)
	s := startServe(t, "--listen", "127.0.0.1:0", "--database", filepath.Join(t.TempDir(), "forbear.db"), "--allow-target", "127.0.0.0/8")
	post(t, "PUT", s.base+"/v1/endpoints/acme", `{"url":"`+receiver.URL+`"}`, 200)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v1/messages", strings.NewReader(`{"endpoint":"acme","payload":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", "00-"+trace+"-"+submitter+"-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("status %d", resp.StatusCode)
	}
	for range 1500 {
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		if n == 2 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.AfterFunc(500*time.Millisecond, func() { close(stopping) })
	if code := s.stop(); code != 0 { // which sends what is left
		t.Errorf("code %d: %s", code, s.log)
	}
	mu.Lock()
	defer mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	var sent []string
	resends := map[int64]int{}
	for _, span := range c.spans {
		if span.Name != "POST" || fmt.Sprintf("%x", span.ParentSpanId) != submitter {
			t.Errorf("span %s below %x, want an attempt below %s", span.Name, span.ParentSpanId, submitter)
		}
		for _, kv := range span.Attributes {
			if kv.Key == "http.request.resend_count" {
				resends[kv.Value.GetIntValue()]++
			}
		}
		sent = append(sent, fmt.Sprintf("00-%x-%x-01", span.TraceId, span.SpanId))
	}
	if len(resends) != 1 || resends[1] != 1 {
		t.Errorf("resend counts %v, want 1 at the second attempt", resends)
	}
	if len(sent) != 2 || !slices.Equal(seen, sent) || !strings.HasPrefix(sent[0], "00-"+trace) {
		t.Errorf("the receiver saw %v, want the spans %v", seen, sent)
	}
}
