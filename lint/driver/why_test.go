package driver

import (
	"strings"
	"testing"
)

// TestExplainFinding: a finding is shown with what it rests on, a retry without
// one with what is known of it, and other code with neither.
func TestExplainFinding(t *testing.T) {
	dir := module(t, map[string]string{
		"fetch.go": fixedRetry,
		"sub/random.go": `package sub

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

func Fetch(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for attempt := 0; ; attempt++ {
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil || attempt == 2 {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Second << attempt)):
		}
	}
}
`,
	})
	tests := []struct {
		at   string
		code int
		want []string
		not  string
	}{
		{"fetch.go:10", ExitPass, []string{
			"fetch.go:10:2: FB1001 FixedInterval (high): retries http.Get on failure and waits 1s every time\n",
			"  for      a failure of http.Get leads to another attempt (fetch.go:12)\n",
			"  for      it waits after a failure (fetch.go:15)\n",
			"  for      http.Get leaves the process (fetch.go:12)\n",
		}, "against"},
		{"./fetch.go:10:2", ExitPass, []string{"FB1001"}, ""},
		{"fetch.go:13", ExitPass, []string{"FB1001"}, ""}, // inside of the loop
		{"sub/random.go:18", ExitPass, []string{
			"sub/random.go:13:2: retries http.Client.Do, and its wait is random, up to 3 times: no rule reports it\n",
			"  for      it counts the attempts\n",
		}, "FB1001"},
		{"fetch.go:1", ExitPass, []string{"fetch.go:1: no retry is seen here\n"}, ""},
		{"fetch.go", ExitUnjudged, []string{`--explain-finding "fetch.go": want FILE.go:LINE`}, ""},
		{"fetch.go:x", ExitUnjudged, []string{`want FILE.go:LINE`}, ""},
		{"other.go:1", ExitUnjudged, []string{"other.go"}, "no retry"},
		{"missing/fetch.go:1", ExitUnjudged, []string{"missing"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.at, func(t *testing.T) {
			code, stdout, stderr := lintIn(t, dir, "--explain-finding", tt.at)
			if code != tt.code {
				t.Errorf("exit code %d, want %d; %s%s", code, tt.code, stdout, stderr)
			}
			for _, w := range tt.want {
				if !strings.Contains(stdout+stderr, w) {
					t.Errorf("got\n%s%s\nwant %q", stdout, stderr, w)
				}
			}
			if tt.not != "" && strings.Contains(stdout, tt.not) {
				t.Errorf("got\n%s\nwant nothing of %q", stdout, tt.not)
			}
		})
	}
}
