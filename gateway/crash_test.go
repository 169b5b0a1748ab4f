package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// TestUpgradeWithABody: a request that has a body does not change its protocol. Who sends
// the body would read the same connection as who copies the new protocol, and net/http
// panics there, where no one recovers.
func TestUpgradeWithABody(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			t.Error("the upgrade was passed on")
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	got := raw(t, address, "POST /up/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("got %q", got)
	}
}

// TestEarlyResponsesOverHTTP2: callers whose uploads are still under way when their
// response is over do not touch what is no longer theirs.
func TestEarlyResponsesOverHTTP2(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, r.URL.Path)
	}))
	up.Config.Protocols = protocols
	up.Start()
	t.Cleanup(up.Close)
	address := start(t, gateway.Route{
		Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, quick), Transport: &http.Transport{Protocols: protocols},
	})
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for i := range 60 {
				path := fmt.Sprintf("/%d/%d", caller, i)
				resp, err := client.Post(address+"/up"+path, "text/plain", strings.NewReader(strings.Repeat("x", 1000+i*2000)))
				if err != nil {
					continue // a reset of the upload may come before the response
				}
				text, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err == nil && resp.StatusCode == http.StatusCreated && string(text) != path {
					t.Errorf("%s got %q", path, text)
				}
			}
		})
	}
	all.Wait()
	if got := get(t, address+"/up/after"); got.body != "/after" {
		t.Errorf("afterwards: %d %q", got.StatusCode, got.body)
	}
}

// TestStalledUploadMeetsItsEnd: a caller who stops sending learns of the end of the call's
// time, or of the dependency, when it comes.
func TestStalledUploadMeetsItsEnd(t *testing.T) {
	dead := scripted(t, "")
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	r := retryer(t, quick)
	address := start(
		t,
		gateway.Route{Prefix: "/late", Target: parse(t, "http://"+hung.Addr().String()), Retryer: r, Limits: gateway.Limits{Timeout: 300 * time.Millisecond}},
		gateway.Route{Prefix: "/closed", Target: parse(t, "http://127.0.0.1:1"), Retryer: r},
		gateway.Route{Prefix: "/dead", Target: parse(t, dead), Retryer: r},
		gateway.Route{Prefix: "/stream", Target: parse(t, dead), Retryer: r, Limits: gateway.Limits{Stream: true}},
	)
	for path, want := range map[string]string{"/late": "504", "/dead": "502", "/stream": "502", "/closed": "502", "/none": "404"} {
		t.Run(path, func(t *testing.T) {
			got := raw(t, address, "POST "+path+" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	}
}

// TestResetUnderAnUpload: a dependency that resets its stream while a caller has more to
// send has failed. The caller has not left, and must not be given an empty 200.
func TestResetUnderAnUpload(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	up.Config.Protocols = protocols
	up.Start()
	t.Cleanup(up.Close)
	address := start(t, gateway.Route{
		Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, quick), Transport: &http.Transport{Protocols: protocols},
	})
	for range 9 { // what net/http makes of it is quicker at times
		got := raw(t, address, "POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "urn:forbear:problem:upstream") {
			t.Fatalf("got %q, want 502", got)
		}
	}
}

// TestCallerThatEndsItsSide: net/http takes a caller who has closed its side of the
// connection for one who has left. It may still read: then it must not find a 200.
func TestCallerThatEndsItsSide(t *testing.T) {
	came := make(chan struct{})
	address := before(t, quick, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		<-r.Context().Done()
	})
	for _, request := range []string{
		"GET /up HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	} {
		c := dial(t, address)
		_, _ = io.WriteString(c, request)
		<-came
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
			t.Errorf("got %q, %v, want the connection's end", got, err)
		}
	}
}

// TestHintsToACallerWhoResets: a stream may end while its 103 is being written. The
// header map is the writer's until then, and to change it would end the process.
func TestHintsToACallerWhoResets(t *testing.T) {
	leave := make(chan context.CancelFunc, 1)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		for i := range 400 {
			w.Header().Set(fmt.Sprintf("X-Hint-%d", i), "a")
		}
		w.WriteHeader(http.StatusEarlyHints)
		wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
		time.Sleep(wait)
		(<-leave)()
		<-r.Context().Done()
	})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	for i := range 150 {
		ctx, cancel := context.WithCancel(t.Context())
		leave <- cancel
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/up?wait=%dus", address, i*20), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(r); err == nil {
			_ = resp.Body.Close()
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// TestRequestLinesOfHTTP2: what would be two things in a request line is refused.
func TestRequestLinesOfHTTP2(t *testing.T) {
	got := make(chan string, 9)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // a server of net/http would refuse such a line, and not show it
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			got <- line
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = c.Close()
		}
	}()
	address := start(t, gateway.Route{Prefix: "/up", Target: parse(t, "http://"+l.Addr().String()), Retryer: retryer(t, quick)})
	for _, tc := range []struct{ method, path, authority string }{
		{"GET /admin HTTP/1.1", "/up/x", "a"},
		{"GET", "/up/x HTTP/1.1", "a"},
		{"GET", "/up/x?a b", "a"},
		{"GET", "/up/x\ty", "a"},
		{"G(T", "/up/x", "a"},
		{"GET", "/up/x", "a,b"},
		{"GET", "/up/x", "x y"},
		{"GET", "/up/x", "x/y"},
		{"GET", "/up/x", "x#"},
		{"GET", "/up/x", "u@x"},
		{"GET", "/up/x", "x:80,y"},
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+h2Frame(4, 0, 0, "")+
			h2Frame(1, 5, 1, h2Field(":method", tc.method)+h2Field(":scheme", "http")+h2Field(":path", tc.path)+h2Field(":authority", tc.authority)))
		// Until the stream has its response, or is refused.
		in := bufio.NewReader(c)
		for {
			head := make([]byte, 9)
			if _, err := io.ReadFull(in, head); err != nil {
				t.Fatalf("%v: %v", tc, err)
			}
			if _, err := in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
				t.Fatal(err)
			}
			if id := head[8]; id == 1 && (head[3] == 1 || head[3] == 3) || head[3] == 7 {
				break
			}
		}
		_ = c.Close()
	}
	select {
	case line := <-got:
		t.Errorf("the target got %q", line)
	default:
	}
}

// TestResetUnderInterimResponses: a caller who resets a stream under responses before the
// response does not make us write to headers that are still being sent. The runtime ends
// the process when it sees that.
func TestResetUnderInterimResponses(t *testing.T) {
	var hint strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&hint, "X-Hint-%d: %[1]d\r\n", i)
	}
	up := scripted(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\n"+hint.String()+"\r\n", 4)+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	address := start(t, gateway.Route{Prefix: "/up", Target: parse(t, up), Retryer: retryer(t, quick)})
	var all sync.WaitGroup
	for caller := range 4 {
		all.Go(func() {
			for i := range 50 {
				c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _, _ = io.Copy(io.Discard, c) }()
				_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+h2Frame(4, 0, 0, "")+
					h2Frame(1, 5, 1, h2Field(":method", "GET")+h2Field(":scheme", "http")+h2Field(":path", "/up/x")+h2Field(":authority", "a")))
				time.Sleep(time.Duration(2+(i*4+caller)%16) * time.Millisecond)
				_, _ = io.WriteString(c, h2Frame(3, 0, 1, "\x00\x00\x00\x08")) // RST_STREAM
				time.Sleep(time.Millisecond)
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

// h2Frame and h2Field write HTTP/2 by hand: no client would write this.
func h2Frame(kind, flags, stream byte, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}) + payload
}

func h2Field(name, value string) string {
	return "\x00" + string([]byte{byte(len(name))}) + name + string([]byte{byte(len(value))}) + value
}
