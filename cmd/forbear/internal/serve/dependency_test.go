package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/policyfile"
)

// refusing returns an address that refuses connections, and that no one else gets
// meanwhile: one end of a connection to elsewhere.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := from.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

// TestServeEndpoints: the addresses of the policy file are called in turns by the
// name of the url, one that is dead fails no call and is left out, and a reload with
// other addresses drops none either.
func TestServeEndpoints(t *testing.T) {
	var hosts sync.Map
	var counts [4]atomic.Int64
	var addresses []string
	for i := range 4 {
		up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			counts[i].Add(1)
			hosts.Store(r.Host, true)
		}))
		t.Cleanup(up.Close)
		addresses = append(addresses, up.Listener.Addr().String())
	}
	addresses[1] = refusing(t)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(addresses []string) {
		text := fmt.Sprintf(`service: checkout
dependencies:
  up:
    url: http://payments.internal/v1
    endpoints: ["%s"]
    connection_age: 1m
    backoff: {base: 1ms, cap: 1ms}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /, dependency: up}
`, strings.Join(addresses, `", "`))
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	write(addresses[:3])
	admin := closed(t)
	s := startServe(t, "--config", path, "--reload-every", "10ms", "--admin", strings.TrimPrefix(admin, "http://"))
	get := func() {
		resp, err := http.Get(s.base + "/x")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Errorf("got %d: %s", resp.StatusCode, body)
		}
	}
	for range 60 {
		get()
	}
	if _, page := status(t, "GET", admin+"/admin/status", ""); !strings.Contains(page, `{"address":"`+addresses[1]+`","in":false,"failures":3,"until":"`) {
		t.Errorf("the status has no endpoint that is left out: %s", page)
	}
	_, page := status(t, "GET", admin+"/metrics", "")
	for _, want := range []string{
		`upstream_endpoints{dependency="up",service="checkout"} 3`,
		`upstream_endpoints_left_out{dependency="up",service="checkout"} 1`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "an endpoint is out of rotation") || !strings.Contains(log, "dependency=up") {
		t.Errorf("the log: %s", log)
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					get()
				}
			}
		})
	}
	write([]string{addresses[2], addresses[3]})
	eventually(t, "the reload", func() bool { return counts[3].Load() > 10 })
	before := counts[0].Load()
	for range 20 {
		get()
	}
	close(stop)
	callers.Wait()
	if now := counts[0].Load(); now > before+1 {
		t.Errorf("%d calls went to an address that the file has no more", now-before)
	}
	hosts.Range(func(host, _ any) bool {
		if host != "payments.internal" {
			t.Errorf("an upstream was called %s", host)
		}
		return true
	})
}

func TestReach(t *testing.T) {
	file, err := policyfile.Parse("f", []byte(`
dependencies:
  a: {url: "https://a.internal/v1", endpoints: dns, connection_age: off}
  b: {url: "http://b.internal", endpoints: dns}
  c: {url: "http://c.internal:8080", endpoints: dns}
  d: {url: "http://d.internal", endpoints: ["10.0.0.1:80"], connection_age: 90s}
  e: {url: "http://e.internal"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []upstream.Config{
		{DNS: "a.internal:443", MaxAge: -1},
		{DNS: "b.internal:80"},
		{DNS: "c.internal:8080"},
		{Endpoints: []string{"10.0.0.1:80"}, MaxAge: 90 * time.Second},
		{},
	} {
		if got := reach(&policyfile.File{}, file.Dependencies[i], parsed(t, file.Dependencies[i].URL)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", file.Dependencies[i].Name, got, want)
		}
	}
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
