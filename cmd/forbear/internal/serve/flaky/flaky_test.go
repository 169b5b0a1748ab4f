package flaky

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	srv := httptest.NewServer(Handler())
	defer srv.Close()
	for _, tt := range []struct {
		path    string
		attempt int // 0: a client that does not count
		status  int // 0: no answer
	}{
		{"/flaky/ok", 0, 200},
		{"/flaky/status/503", 0, 503},
		{"/flaky/status/503", 9, 503},
		{"/flaky/status/418?times=2", 1, 418},
		{"/flaky/status/418?times=2", 2, 418},
		{"/flaky/status/418?times=2", 3, 200},
		{"/flaky/status/teapot", 1, 400},
		{"/flaky/status/100", 1, 400},
		{"/flaky/retry-after/2", 1, 429},
		{"/flaky/retry-after/2", 2, 200},
		{"/flaky/retry-after/soon", 1, 400},
		{"/flaky/reset", 1, 0},
		{"/flaky/reset", 2, 200},
		{"/flaky/delay/1ms", 1, 200},
		{"/flaky/delay/30s?times=1", 2, 200},
		{"/flaky/delay/2m", 1, 400},
		{"/flaky/stream/1", 1, 200},
		{"/flaky/stream/301", 1, 400},
		{"/", 1, 200},
		{"/else", 1, 404},
	} {
		req, err := http.NewRequest(http.MethodGet, srv.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.attempt > 0 {
			req.Header.Set("X-Retry-Attempt", strconv.Itoa(tt.attempt-1))
		}
		// A connection of its own: net/http must not repeat the request.
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if tt.status == 0 {
			if err == nil {
				t.Errorf("%s, attempt %d: got %d, want no answer", tt.path, tt.attempt, resp.StatusCode)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, attempt %d: %v", tt.path, tt.attempt, err)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s, attempt %d: got %d, want %d", tt.path, tt.attempt, resp.StatusCode, tt.status)
		}
		if strings.HasPrefix(tt.path, "/flaky/retry-after/2") && tt.status == 429 && resp.Header.Get("Retry-After") != "2" {
			t.Errorf("%s: no Retry-After", tt.path)
		}
	}
}

// The manual shows each path that there is.
func TestManualIsComplete(t *testing.T) {
	for _, path := range []string{"ok", "status", "retry-after", "reset", "delay", "stream"} {
		if !strings.Contains(Manual, "/flaky/"+path) {
			t.Errorf("the manual lacks %s", path)
		}
	}
}
