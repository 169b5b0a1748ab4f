//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/latertest"
)

// Two processes share an SQLite file while one follows the other, of the same version
// or of a later one that adds to the schema. What is accepted meanwhile, by either, is
// delivered once: the old one claims nothing more when the new one is ready, and writes
// back what it has sent.
func TestHandoverOfDeliveries(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got[r.Header.Get("Webhook-Id")]++
	}))
	defer sink.Close()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "dependencies: {up: {url: '" + sink.URL + "'}}\ngateway:\n  listen: " + freeAddress(t) + "\n  routes: [{prefix: /up, dependency: up}]\n"
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(t.TempDir(), "later")
	latertest.Go(t, "build", "-o", later, ".")
	program, database := filepath.Join(t.TempDir(), "forbear"), filepath.Join(t.TempDir(), "forbear.db")
	if err := os.Link(builtProgram(t), program); err != nil {
		t.Fatal(err)
	}
	s := run(t, exec.Command(program, "serve", "--config", path, "--drain-delay", "3s", "--database", database, "--allow-target", "127.0.0.0/8"))
	send := func(method, path, body string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, data)
		}
		return nil
	}
	if err := send("PUT", "/v1/endpoints/a", `{"url":"`+sink.URL+`"}`); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	var accepted sync.Map
	for i := range 4 {
		wg.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-over:
					return
				default:
				}
				id := fmt.Sprintf("m-%d-%d", i, j)
				if err := send("POST", "/v1/messages", `{"id":"`+id+`","endpoints":["a"],"payload":{"n":1}}`); err != nil {
					t.Error(err)
					return
				}
				accepted.Store(id, true)
			}
		})
	}
	for i := range 2 {
		if i == 1 { // as a package does
			if err := os.Rename(later, program); err != nil {
				t.Fatal(err)
			}
		}
		s.await(t, "deliveries", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) > 40*(i+1) })
		s.signal(t, syscall.SIGUSR2)
		s.await(t, "the handover", func() bool { return strings.Count(s.log.String(), "handed over") == i+1 })
		mu.Lock()
		seen := len(got)
		mu.Unlock()
		s.await(t, "deliveries after the handover", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) > seen+40 })
	}
	close(over)
	wg.Wait()
	n, twice := 0, 0
	accepted.Range(func(id, _ any) bool {
		n++
		s.await(t, "the delivery of "+id.(string), func() bool { mu.Lock(); defer mu.Unlock(); return got[id.(string)] > 0 })
		mu.Lock()
		defer mu.Unlock()
		if got[id.(string)] > 1 {
			twice++
		}
		return true
	})
	t.Logf("%d accepted and delivered, %d more than once", n, twice)
	status, err := exec.CommandContext(t.Context(), builtProgram(t), "migrate", "--status", "--database", database).CombinedOutput()
	if err != nil || !strings.Contains(string(status), "9000  later ") || !strings.Contains(string(status), "of a later forbear") {
		t.Errorf("the second successor was of a later version, but the steps are %s, %v", status, err)
	}
	if twice > 0 {
		t.Errorf("%d of %d messages were delivered more than once", twice, n)
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 || strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}
