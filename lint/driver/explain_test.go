package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainFinding: a finding is shown with what it rests on, at each line of its
// loop, and other code with nothing.
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
			"  +1  a success ends it\n",
			"  +3  the attempt leaves the process\n",
		}, "against"},
		{"./fetch.go:10:2", ExitPass, []string{"FB1001"}, ""},
		{"fetch.go:13", ExitPass, []string{"FB1001"}, ""}, // inside of the loop
		{"sub/random.go:18", ExitPass, []string{"sub/random.go:18: no finding here\n"}, "FB1001"},
		{"fetch.go:1", ExitPass, []string{"fetch.go:1: no finding here\n"}, ""},
		{"fetch.go", ExitUnjudged, []string{`--explain-finding "fetch.go": want FILE.go:LINE`}, ""},
		{"fetch.go:x", ExitUnjudged, []string{`want FILE.go:LINE`}, ""},
		{"other.go:1", ExitUnjudged, []string{"other.go"}, "no finding"},
		{"missing/fetch.go:1", ExitUnjudged, []string{"missing"}, ""},
		{filepath.Join(dir, "fetch.go") + ":10", ExitPass, []string{"fetch.go:10:2: FB1001"}, ""},
		{filepath.Join(dir, "sub", "..", "fetch.go") + ":10:2", ExitPass, []string{"fetch.go:10:2: FB1001"}, ""},
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

// TestExplainFindingElsewhere: the file may be named from a folder below it, and
// through a link.
func TestExplainFindingElsewhere(t *testing.T) {
	dir := module(t, map[string]string{"fetch.go": fixedRetry, "sub/sub.go": "package sub\n"})
	link := filepath.Join(t.TempDir(), "checkout")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]string{
		{filepath.Join(dir, "sub"), "../fetch.go:10"},
		{link, "fetch.go:10"},
		{link, filepath.Join(dir, "fetch.go") + ":10"},
		{dir, filepath.Join(link, "fetch.go") + ":10"},
		{filepath.Join(link, "sub"), filepath.Join(link, "fetch.go") + ":10"},
	} {
		if code, out, errs := lintIn(t, tt[0], "--explain-finding", tt[1]); code != ExitPass || !strings.Contains(out, "fetch.go:10:2: FB1001") {
			t.Errorf("%v: got %d\n%s%s", tt, code, out, errs)
		}
	}
}

// TestPlaceAt: the line is behind the name, which may have colons.
func TestPlaceAt(t *testing.T) {
	for s, want := range map[string]string{
		"a.go:3": "a.go 3", "a.go:3:7": "a.go 3", `C:\b\a.go:3`: `C:\b\a.go 3`, "b.go:x/a.go:3": "b.go:x/a.go 3",
	} {
		if at := placeAt.FindStringSubmatch(s); at == nil || at[1]+" "+at[2] != want {
			t.Errorf("%s: got %q", s, at)
		}
	}
}
