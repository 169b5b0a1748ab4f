package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
)

// scripted is an upstream that responds to each request with the same bytes and then
// hangs up. It returns its address.
func scripted(t *testing.T, response string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, response)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// dial connects to a server, for a minute.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// raw sends bytes to a server and returns all that comes back.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	c := dial(t, address)
	defer c.Close()
	_, _ = io.WriteString(c, request)
	text, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stayed open after %q", text)
	}
	return string(text)
}

// TestResponsesThatBreak: as long as nothing of a response has gone to the caller, its
// end is a 502; afterwards the connection breaks off.
func TestResponsesThatBreak(t *testing.T) {
	for _, tc := range []struct {
		name, response string
		status         int // of what the caller gets; 0: a broken response
	}{
		{"before its first byte, of a length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", 502},
		{"before its first byte, in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 502},
		{"in its first chunk's size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 502},
		{"after some of its length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 0},
		{"after a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 0},
		{"status 099", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", 502},
		{"status 101 unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", 502},
		{"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", 502},
		{"whole, of a length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200},
		{"whole, in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200},
		{"whole, to the end of the connection", "HTTP/1.1 200 OK\r\n\r\nabc", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address := start(t, gateway.Route{Prefix: "/", Target: parse(t, scripted(t, tc.response)), Retryer: retryer(t, quick)})
			resp, err := http.Post(address+"/a", "text/plain", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			switch {
			case tc.status == 0:
				if err == nil {
					t.Errorf("%d %q, and no error", resp.StatusCode, text)
				}
			case err != nil || resp.StatusCode != tc.status:
				t.Errorf("%d, want %d: %q, %v", resp.StatusCode, tc.status, text, err)
			case tc.status == 502:
				readProblem(t, answer{resp, string(text)})
			case string(text) != "abc" || resp.Header["Content-Type"] != nil:
				t.Errorf("%q of type %q, which no one named", text, resp.Header["Content-Type"])
			}
		})
	}
}

// TestTrailersPass: in both directions, announced or not.
func TestTrailersPass(t *testing.T) {
	seen := make(chan http.Header, 1)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Trailer
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "abc")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/up", io.NopCloser(strings.NewReader("body")))
	if err != nil {
		t.Fatal(err)
	}
	req.Trailer = http.Header{"X-Check": {"7"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || string(text) != "abc" || resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-Late") != "1" {
		t.Errorf("got %q, trailers %v, %v", text, resp.Trailer, err)
	}
	if got := <-seen; got.Get("X-Check") != "7" {
		t.Errorf("the target saw the trailers %v", got)
	}
}

// TestTrailersAfterALength: HTTP/2 has both, HTTP/1 trailers after chunks alone.
func TestTrailersAfterALength(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, text)
		w.Header().Set("X-Sum", "42")
	}))
	up.Config.Protocols = protocols
	up.Start()
	t.Cleanup(up.Close)
	address := start(t, gateway.Route{
		Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, quick), Transport: &http.Transport{Protocols: protocols},
	})
	for request, want := range map[string]string{
		"GET /up/abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":  "3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n",
		"GET /up/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":     "0\r\nX-Sum: 42\r\n\r\n",
		"GET /up/abc HTTP/1.0\r\nHost: a\r\n\r\n":                       "abc",
		"HEAD /up/abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n": "",
	} {
		head, got, _ := strings.Cut(raw(t, address, request), "\r\n\r\n")
		if got != want || strings.Contains(head, "Content-Length: 3") == strings.Contains(want, "X-Sum") {
			t.Errorf("%q: got %q after %q, want %q", request, got, head, want)
		}
	}
}

// TestEarlyHintsPass: they arrive before the response, and do not become a part of it.
func TestEarlyHintsPass(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "abc")
	})
	got := raw(t, address, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	hint, rest, _ := strings.Cut(got, "HTTP/1.1 200 OK")
	if !strings.HasPrefix(hint, "HTTP/1.1 103 Early Hints\r\n") || !strings.Contains(hint, "Link: </a.css>") || strings.Contains(rest, "Link:") {
		t.Errorf("got %q", got)
	}
	if old := raw(t, address, "GET /up HTTP/1.0\r\nHost: a\r\n\r\n"); strings.Contains(old, "103 Early Hints") {
		t.Errorf("HTTP/1.0 got %q", old)
	}
}

// TestBadRequestBodies: what a caller sends against the rules is its own fault, and the
// dependency is neither blamed nor given it for a complete request.
func TestBadRequestBodies(t *testing.T) {
	p := quick
	p.Breaker = breaker.Policy{FailureRate: 0.25, MinCalls: 1}
	var whole atomic.Int64
	address := before(t, p, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
	})
	for _, body := range []string{"zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\r\n-1\r\n", "3\r\nabc\r\nffffffffffffffffffff\r\n"} {
		got := raw(t, address, "PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		if !strings.HasPrefix(got, "HTTP/1.1 400 Bad Request\r\n") || !strings.Contains(got, "urn:forbear:problem:request-body") || !strings.Contains(got, "Connection: close") {
			t.Errorf("%q: got %q", body, got)
		}
	}
	if n := whole.Load(); n != 0 {
		t.Errorf("%d of them arrived as complete", n)
	}
	if got := get(t, address+"/up"); got.StatusCode != 200 {
		t.Errorf("afterwards: %d %s", got.StatusCode, got.body)
	}
}

// TestRefused: what must not be passed on never reaches the target.
func TestRefused(t *testing.T) {
	var arrived atomic.Int64
	address := before(t, quick, func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	for _, tc := range []struct{ name, request, want string }{
		{"CONNECT", "CONNECT up:443 HTTP/1.1\r\nHost: up:443\r\nConnection: close\r\n\r\n", "405"},
		{"TRACE", "TRACE /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "405"},
		{"two lengths", "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /up HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		{"a fragment", "GET /up/a#b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := raw(t, address, tc.request)
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.want+" ") || strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("got %q, want one %s", got, tc.want)
			}
		})
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestLoopIsStopped: a gateway whose target leads back to it refuses its own request
// when it comes the first time.
func TestLoopIsStopped(t *testing.T) {
	var turns atomic.Int64
	srv := httptest.NewUnstartedServer(nil)
	g, err := gateway.New(gateway.Config{Routes: []gateway.Route{
		{Prefix: "/", Target: parse(t, "http://"+srv.Listener.Addr().String()), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config = gateway.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turns.Add(1)
		g.ServeHTTP(w, r)
	}))
	srv.Start()
	defer srv.Close()
	got := get(t, srv.URL+"/a")
	if p := readProblem(t, got); got.StatusCode != http.StatusLoopDetected || p.Type != "urn:forbear:problem:loop" || turns.Load() != 2 {
		t.Errorf("%d %s after %d turns", got.StatusCode, got.body, turns.Load())
	}
}

// TestOriginHeaders: what a trusted proxy says of the caller is kept and completed, and
// what any other says is replaced.
func TestOriginHeaders(t *testing.T) {
	seen := make(chan http.Header, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer up.Close()
	said := http.Header{
		"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"},
		"Forwarded": {"for=192.0.2.7;proto=https"}, "Via": {"1.1 edge"},
	}
	for _, tc := range []struct {
		trusted                            string
		chain, proto, host, forwarded, via string
	}{
		{"127.0.0.0/8", "192.0.2.7, 127.0.0.1", "https", "shop.example", "for=192.0.2.7;proto=https, for=127.0.0.1;proto=http", "1.1 edge, 1.1 forbear-"},
		{"10.0.0.0/8", "127.0.0.1", "http", "", "", "1.1 edge, 1.1 forbear-"},
	} {
		g, err := gateway.New(gateway.Config{
			Routes:         []gateway.Route{{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick)}},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix(tc.trusted)},
		})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(g)
		if tc.host == "" {
			tc.host = strings.TrimPrefix(srv.URL, "http://")
		}
		call(t, http.MethodGet, srv.URL, said, nil)
		srv.Close()
		h := <-seen
		got := fmt.Sprint(h["X-Forwarded-For"], h["X-Forwarded-Proto"], h["X-Forwarded-Host"], h.Get("Forwarded"))
		if want := fmt.Sprint([]string{tc.chain}, []string{tc.proto}, []string{tc.host}, tc.forwarded); got != want {
			t.Errorf("trusting %s: got %s, want %s", tc.trusted, got, want)
		}
		if via := h.Get("Via"); !strings.HasPrefix(via, tc.via) {
			t.Errorf("Via %q", via)
		}
	}
}

// TestUpgradeToHTTP2IsNotPassedOn: its frames would go past the gateway.
func TestUpgradeToHTTP2IsNotPassedOn(t *testing.T) {
	seen := make(chan http.Header, 1)
	address := before(t, quick, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	raw(t, address, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
	h := <-seen
	for _, name := range []string{"Upgrade", "Http2-Settings", "Connection"} {
		if v := h[textproto.CanonicalMIMEHeaderKey(name)]; v != nil {
			t.Errorf("%s: %q was passed on", name, v)
		}
	}
}

// TestEarlyResponses: a response that begins before the end of its request's body goes
// to the caller, and the upload goes on with no byte missing; one that ends before is
// read by a caller who is still sending, and the connection, if it is kept, is sound.
func TestEarlyResponses(t *testing.T) {
	const size = 200 << 10
	sum := make(chan int, 1)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = control.Flush()
		n, _ := io.Copy(io.Discard, r.Body)
		sum <- int(n)
		fmt.Fprint(w, n)
	})
	body, in := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/up/echo", body)
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("x", 1<<10)
	sent := make(chan struct{})
	go func() { _, _ = io.WriteString(in, piece); close(sent) }()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	<-sent
	for range size>>10 - 1 {
		_, _ = io.WriteString(in, piece)
	}
	_ = in.Close()
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if got := <-sum; err != nil || got != size || string(text) != fmt.Sprint(size) {
		t.Errorf("%d bytes arrived, want %d; the response is %q, %v", got, size, text, err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/up/refuse", strings.NewReader(strings.Repeat("y", 1+i*2000)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("request %d: %d", i+1, resp.StatusCode)
		}
	}
}

// TestHalfClosedUpgrade: after a change of protocol each side may end its own way first.
func TestHalfClosedUpgrade(t *testing.T) {
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	go func() {
		c, err := up.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: count\r\n\r\n")
		text, _ := io.ReadAll(in) // to the caller's end
		fmt.Fprintf(c, "got %d", len(text))
	}()
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, "http://"+up.Addr().String()), Retryer: retryer(t, quick)})
	c := dial(t, address)
	_, _ = io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: count\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "hello")
	_ = c.(*net.TCPConn).CloseWrite()
	if text, err := io.ReadAll(in); string(text) != "got 5" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestHalfClosedCallers: net/http takes a caller who closes its half of the connection
// for one that has left. Such a caller still reads, and must not read of a success.
func TestHalfClosedCallers(t *testing.T) {
	release := make(chan struct{})
	address := before(t, quick, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	for name, request := range map[string]string{
		"GET":  "GET /up/x HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST": "POST /up/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, address)
			_, _ = io.WriteString(c, request)
			_ = c.(*net.TCPConn).CloseWrite()
			if text, err := io.ReadAll(c); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

// TestHintsOfOthersStayInside: what a token endpoint says beforehand is not for callers.
func TestHintsOfOthersStayInside(t *testing.T) {
	tokens := scripted(t, "HTTP/1.1 103 Early Hints\r\nSet-Cookie: session=s3cret\r\n\r\n"+
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n"+`{"access_token":"one","expires_in":99}`)
	t.Setenv("GATEWAY_TEST_SECRET", "s3cret")
	own, err := gateway.CredentialSource{TokenURL: tokens, ClientID: "a", ClientSecret: gateway.Reference{Env: "GATEWAY_TEST_SECRET"}}.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	up := scripted(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, up), Retryer: retryer(t, quick), Credentials: own})
	got := raw(t, address, "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if strings.Contains(got, "s3cret") || !strings.Contains(got, "Link: </a.css>") || !strings.HasSuffix(got, "ok") {
		t.Errorf("got %q", got)
	}
}

// TestBodyIsNoRequest: a response that comes before the end of a body is the last of its
// connection, and what still comes of the body is never taken for a request.
func TestBodyIsNoRequest(t *testing.T) {
	const second = "GET /x/second HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, c := range map[string]struct{ framing, sent, pause, rest string }{
		"a body that stands still":           {"Content-Length: 43", "hello", "1s", second},
		"chunks that stand still":            {"Transfer-Encoding: chunked", "5\r\nhello\r\n", "1s", "26\r\n" + second},
		"a body that goes on":                {"Content-Length: 43", "hello", "0s", second},
		"chunks that go on":                  {"Transfer-Encoding: chunked", "5\r\nhello\r\n", "0s", "0\r\n\r\n" + second},
		"a long body, and a request in it":   {"Content-Length: 9999999", strings.Repeat("x", 300<<10), "1s", second},
		"long chunks, and a request in them": {"Transfer-Encoding: chunked", "FFFFFF\r\n" + strings.Repeat("x", 300<<10), "1s", second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := scripted(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			address := start(t, gateway.Route{Prefix: "/x", Target: parse(t, up), Retryer: retryer(t, quick)})
			conn := dial(t, address)
			_, _ = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: a\r\n"+c.framing+"\r\n\r\n"+c.sent)
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
				t.Fatalf("got %v, %v", resp, err)
			}
			if text, err := io.ReadAll(resp.Body); string(text) != "no" {
				t.Errorf("got %q, %v", text, err)
			}
			pause, _ := time.ParseDuration(c.pause)
			time.Sleep(pause)
			_, _ = io.WriteString(conn, c.rest)
			if rest, err := io.ReadAll(in); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after it came %q, %v", rest, err)
			}
		})
	}
}
