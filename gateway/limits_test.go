package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// TestRoutesByMethodAndHeader: of the routes of a path the most particular takes a
// request, and a method that none takes is refused by naming those that are taken.
func TestRoutesByMethodAndHeader(t *testing.T) {
	up := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name+" "+r.URL.Path) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	r := retryer(t, quick)
	address := start(
		t,
		gateway.Route{Prefix: "/a", Target: parse(t, up("any")), Retryer: r},
		gateway.Route{Prefix: "/a", Target: parse(t, up("writes")), Retryer: r, Methods: []string{"POST", "PUT"}},
		gateway.Route{Prefix: "/a", Target: parse(t, up("beta")), Retryer: r, Headers: map[string]string{"x-track": "beta"}},
		gateway.Route{Prefix: "/a", Target: parse(t, up("beta writes")), Retryer: r, Headers: map[string]string{"X-Track": "beta"}, Methods: []string{"POST"}},
		gateway.Route{Prefix: "/reads", Target: parse(t, up("reads")), Retryer: r, Methods: []string{"GET", "HEAD"}},
		gateway.Route{Prefix: "/reads/deep", Target: parse(t, up("deep")), Retryer: r, Methods: []string{"PUT"}},
		gateway.Route{Prefix: "/kept", KeepPrefix: true, Target: parse(t, up("kept")), Retryer: r},
		gateway.Route{Host: "shop.test", Prefix: "/cart", Target: parse(t, up("cart")), Retryer: r},
		gateway.Route{Host: "shop.test", Target: parse(t, up("shop")), Retryer: r},
		gateway.Route{Host: "api.test", Prefix: "/v1", Target: parse(t, up("api")), Retryer: r},
	)
	for _, tc := range []struct{ method, host, path, track, want string }{
		{"GET", "", "/a/x", "", "any /x"},
		{"PUT", "", "/a/x", "", "writes /x"},
		{"GET", "", "/a/x", "beta", "beta /x"},
		{"PUT", "", "/a/x", "beta", "beta /x"},
		{"POST", "", "/a/x", "beta", "beta writes /x"},
		{"GET", "", "/a/x", "gamma", "any /x"},
		{"GET", "", "/reads", "", "reads /"},
		{"DELETE", "", "/reads", "", "405 GET, HEAD"},
		{"PUT", "", "/reads/deep/x", "", "deep /x"},
		{"GET", "", "/reads/deep/x", "", "reads /deep/x"},
		{"DELETE", "", "/reads/deep", "", "405 PUT, GET, HEAD"},
		{"GET", "", "/kept/x", "", "kept /kept/x"},
		{"GET", "shop.test", "/cart/1", "", "cart /1"},
		{"GET", "shop.test", "/cartoon", "", "shop /cartoon"},
		{"GET", "shop.test:8080", "/a", "", "shop /a"},
		{"GET", "api.test", "/v1/x", "", "api /x"},
		{"GET", "api.test", "/a", "", "404 "},
		{"GET", "other.test", "/none", "", "404 "},
	} {
		h := http.Header{}
		if tc.host != "" {
			h.Set("Host", tc.host)
		}
		if tc.track != "" {
			h.Set("X-Track", tc.track)
		}
		got := call(t, tc.method, address+tc.path, h, nil)
		text := got.body
		if got.StatusCode != 200 {
			text = fmt.Sprint(got.StatusCode, " ", got.Header.Get("Allow"))
		}
		if text != tc.want {
			t.Errorf("%s %s%s %s: got %q, want %q", tc.method, tc.host, tc.path, tc.track, text, tc.want)
		}
	}
}

// TestRoutesOfOnePlace: two routes that would take the same requests are a fault.
func TestRoutesOfOnePlace(t *testing.T) {
	r, up := retryer(t, quick), parse(t, "http://up.test")
	beta := map[string]string{"X-Track": "beta"}
	for _, tc := range []struct {
		name string
		b    gateway.Route
		ok   bool
	}{
		{"the same", gateway.Route{Prefix: "/a", Methods: []string{"GET"}}, false},
		{"a method in common", gateway.Route{Prefix: "/a", Methods: []string{"PUT", "GET"}}, false},
		{"other methods", gateway.Route{Prefix: "/a", Methods: []string{"PUT"}}, true},
		{"all methods", gateway.Route{Prefix: "/a"}, true},
		{"a header more", gateway.Route{Prefix: "/a", Methods: []string{"GET"}, Headers: beta}, true},
		{"another host", gateway.Route{Host: "b", Prefix: "/a", Methods: []string{"GET"}}, true},
	} {
		a := gateway.Route{Prefix: "/a", Methods: []string{"GET"}, Target: up, Retryer: r}
		tc.b.Target, tc.b.Retryer = up, r
		if _, err := gateway.New(gateway.Config{Routes: []gateway.Route{a, tc.b}}); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestRouteLimits: what is over a limit of its route is refused, and other routes to
// the dependency go on.
func TestRouteLimits(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/wait":
			arrived <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/forever":
			<-r.Context().Done()
		case "/trickle":
			for range 100 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		}
	}))
	t.Cleanup(up.Close)
	target, r := parse(t, up.URL), retryer(t, quick)
	address := start(
		t,
		gateway.Route{Prefix: "/narrow", Target: target, Retryer: r, Limits: gateway.Limits{MaxConcurrent: 2}},
		gateway.Route{Prefix: "/wide", Target: target, Retryer: r},
		gateway.Route{Prefix: "/hasty", Target: target, Retryer: r, Limits: gateway.Limits{Timeout: 2 * time.Second}},
		gateway.Route{Prefix: "/small", Target: target, Retryer: r, Limits: gateway.Limits{MaxBody: 10}},
	)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if got := get(t, address+"/narrow/wait"); got.StatusCode != 200 {
				t.Errorf("within the limit: %d %s", got.StatusCode, got.body)
			}
		})
		<-arrived
	}
	refused := get(t, address+"/narrow/now")
	if p := readProblem(t, refused); p.Reason != "bulkhead_full" || refused.Header.Get("Retry-After") == "" {
		t.Errorf("over the limit: %+v", p)
	}
	if got := get(t, address+"/wide/now"); got.StatusCode != 200 {
		t.Errorf("beside it: %d %s", got.StatusCode, got.body)
	}
	close(release)
	all.Wait()
	if got := get(t, address+"/narrow/now"); got.StatusCode != 200 {
		t.Errorf("afterwards: %d %s", got.StatusCode, got.body)
	}
	if got := get(t, address+"/hasty/forever"); got.StatusCode != 504 {
		t.Errorf("over the time: %d %s", got.StatusCode, got.body)
	}
	resp, err := http.Get(address + "/hasty/trickle")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a response beyond the time came to its end: %q", text)
	}
	for _, tc := range []struct {
		body   io.Reader
		status int
	}{
		{strings.NewReader("0123456789"), 200},
		{strings.NewReader("0123456789a"), 413},
		{io.MultiReader(strings.NewReader("0123456789")), 200}, // of unknown length
		{io.MultiReader(strings.NewReader("0123456789a")), 413},
	} {
		if got := call(t, http.MethodPut, address+"/small/now", nil, tc.body); got.StatusCode != tc.status {
			t.Errorf("got %d %s, want %d", got.StatusCode, got.body, tc.status)
		}
	}
}

// TestStreamsMayStandStill: on a route for streams, beyond the time that the policy
// gives a body, in both directions; each part arrives before the next is sent.
func TestStreamsMayStandStill(t *testing.T) {
	p := quick
	p.BodyIdle = 150 * time.Millisecond
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
		_ = control.Flush()
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = control.Flush()
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(up.Close)
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, p), Limits: gateway.Limits{Stream: true}})
	body, in := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/watch", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 3 {
		time.Sleep(2 * p.BodyIdle)
		want := fmt.Sprintf("line %d\n", i)
		_, _ = io.WriteString(in, want)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	_ = in.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
}

// TestTimeoutOfUnreadResponse: a caller who does not read its response loses its place
// when its time is over.
func TestTimeoutOfUnreadResponse(t *testing.T) {
	const long = 64 << 20 // more than the system takes for the caller
	entered := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			entered <- struct{}{}
			w.Header().Set("Content-Length", strconv.Itoa(long))
			for part := make([]byte, 1<<20); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
	}))
	defer up.Close()
	for _, over := range []string{"HTTP/1", "HTTP/2"} {
		t.Run(over, func(t *testing.T) {
			address := start(t, gateway.Route{
				Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, quick),
				Limits: gateway.Limits{MaxConcurrent: 1, Timeout: time.Second},
			})
			c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			request := "GET /up/long HTTP/1.1\r\nHost: a\r\n\r\n"
			if over == "HTTP/2" {
				request = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2Frame(4, 0, 0, "") +
					h2Frame(1, 5, 1, h2Field(":method", "GET")+h2Field(":scheme", "http")+h2Field(":path", "/up/long")+h2Field(":authority", "a"))
			}
			_, _ = io.WriteString(c, request)
			<-entered
			for end := time.Now().Add(time.Minute); get(t, address+"/up/short").StatusCode != http.StatusOK; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the place is not given back")
				}
			}
		})
	}
}
