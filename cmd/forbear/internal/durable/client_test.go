package durable

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear/webhook"
)

// The program of the guide, made with the generated client, does what the guide
// says.
func TestClientOfTheGuide(t *testing.T) {
	var mended atomic.Bool
	s, stop := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		if mended.Load() {
			return answer(200), nil
		}
		return answer(400), nil
	})})
	defer stop()
	put(t, s, webhook.Endpoint{ID: "acme", URL: "https://example.com/"})
	call(t, s, "POST", "/v1/messages", `{"id":"order-4711","endpoint":"acme","payload":1}`)
	waitLetters(t, s, 1)
	mended.Store(true)
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	guide := exec.CommandContext(t.Context(), "go", "run", ".", server.URL)
	guide.Dir = "../../../../client/internal/guide"
	out, err := guide.CombinedOutput()
	if want := "order-4711 acme http_400\n1 sent again, left: map[]\n"; err != nil || string(out) != want {
		t.Fatalf("got %q, %v, want %q", out, err, want)
	}
	waitFor(t, "the message", func() bool { return s.Dispatcher.Stats().Delivered == 1 })
}
