package serve

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestServeBodyLimit: a route's body_limit takes effect with a reload, and the bodies of
// calls from before it count within the same memory, of which the log and the metrics
// tell.
func TestServeBodyLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(160 << 20)) // of which a quarter is for bodies
	var seen sync.Map
	arrived, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		hash := [32]byte(h.Sum(nil))
		if _, again := seen.LoadOrStore(hash, true); again {
			return
		}
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-release
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer up.Close()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(limit string) {
		text := "dependencies:\n  files: {url: '" + up.URL + "', backoff: {base: 1ms, cap: 2ms}, breaker: {disabled: true}}\n" +
			"gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /, dependency: files" + limit + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	admin := closed(t)
	s := startServe(t, "--config", path, "--reload-every", "0", "--admin", strings.TrimPrefix(admin, "http://"))
	reload := func(limit, said string) {
		t.Helper()
		write(limit)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, said, func() bool { return strings.Contains(s.log.String(), said) })
	}
	put := func(path, letter string, size int, wantStop string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.base+path, io.MultiReader(strings.NewReader(strings.Repeat(letter, size))))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Forbear-Stop"); got != wantStop || (resp.StatusCode == 200) != (got == "") {
			t.Errorf("%d times %q to %s: status %d, Forbear-Stop %q, want %q", size, letter, path, resp.StatusCode, got, wantStop)
		}
	}
	logged := func(text string) {
		t.Helper()
		if !strings.Contains(s.log.String(), text) {
			t.Errorf("%q is not in the log:\n%s", text, s.log)
		}
	}
	put("/", "a", 9<<20, "not_replayable")
	logged("(in a gateway's route body_limit) is 64 KiB")
	reload(", body_limit: 64MiB", "does not fit into the memory for bodies")
	logged("route=/ body_limit=67108864 memory=41943040")
	put("/", "b", 9<<20, "")
	var slow sync.WaitGroup
	slow.Go(func() { put("/slow", "c", 30<<20, "") })
	<-arrived
	reload(", body_limit: 20MiB", "changes=1")
	put("/", "d", 15<<20, "not_replayable")
	logged("the 40 MiB for the bodies of all requests are taken")
	_, page := status(t, "GET", admin+"/metrics", "")
	if used := "gateway_body_memory_bytes 3.1391744e+07\n"; !strings.Contains(page, used) || !strings.Contains(page, "gateway_body_memory_limit_bytes 4.194304e+07") {
		t.Errorf("%s, and a limit, are not among the metrics:\n%s", used, page)
	}
	close(release)
	slow.Wait()
	put("/", "e", 15<<20, "")
}
