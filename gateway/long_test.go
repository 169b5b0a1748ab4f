package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pipetest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// inMemory puts a gateway with the default policy before h, all over pipes, and returns
// what calls it.
func inMemory(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	behind, front := pipetest.New(), pipetest.New()
	up := &http.Server{Handler: h}
	go func() { _ = up.Serve(behind) }()
	toUp := &http.Transport{DialContext: behind.Dial, DisableCompression: true}
	g, err := gateway.New(gateway.Config{Routes: []gateway.Route{{
		Prefix: "/", Target: parse(t, "http://upstream"), Retryer: retryer(t, forbear.Policy{}), Transport: toUp,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	srv := gateway.NewServer(g)
	go func() { _ = srv.Serve(gateway.Listener(front, nil, nil)) }()
	toGateway := &http.Transport{DialContext: front.Dial}
	t.Cleanup(func() {
		toGateway.CloseIdleConnections()
		toUp.CloseIdleConnections()
		_ = srv.Close()
		_ = up.Close()
	})
	return &http.Client{Transport: toGateway}
}

// TestDayOfEvents: a stream that has something to say once an hour is still whole after
// a day, and each event arrives when it is sent.
func TestDayOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			control := http.NewResponseController(w)
			_ = control.Flush()
			for hour := range 24 {
				time.Sleep(time.Hour)
				fmt.Fprintf(w, "data: %d\n\n", hour)
				_ = control.Flush()
			}
		})
		began := time.Now()
		resp, err := client.Get("http://gateway/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the headers came after %v", waited)
		}
		lines := bufio.NewScanner(resp.Body)
		hour := 0
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			if want := fmt.Sprintf("data: %d", hour); lines.Text() != want {
				t.Errorf("got %q, want %q", lines.Text(), want)
			}
			hour++
			if late := time.Since(began) - time.Duration(hour)*time.Hour; late > time.Second {
				t.Errorf("event %d came %v late", hour, late)
			}
		}
		if hour != 24 || lines.Err() != nil {
			t.Errorf("%d events, %v", hour, lines.Err())
		}
	})
}

// pattern is what long bodies are made of. Its length is prime, so that a piece that is
// lost, doubled or moved shows.
var pattern = func() []byte {
	b := make([]byte, 65521)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}()

// slow is a body of a given length that takes an hour and more: it pauses for a second
// four thousand times.
type slow struct{ at, size int64 }

func (s *slow) Read(p []byte) (int, error) {
	if s.at == s.size {
		return 0, io.EOF
	}
	off := s.at % int64(len(pattern))
	n := int64(copy(p[:min(int64(len(p)), s.size-s.at)], pattern[off:]))
	if every := s.size / 4000; (s.at+n)/every != s.at/every {
		time.Sleep(time.Second)
	}
	s.at += n
	return int(n), nil
}

// compare reads a body to its end and returns how many of its bytes are those of slow.
func compare(r io.Reader) (n int64, err error) {
	buf := make([]byte, 32<<10)
	for {
		k, err := r.Read(buf)
		for p := buf[:k]; len(p) > 0; {
			off := n % int64(len(pattern))
			m := min(len(p), len(pattern)-int(off))
			if !bytes.Equal(p[:m], pattern[off:off+int64(m)]) {
				return n, fmt.Errorf("other bytes after %d", n)
			}
			n, p = n+int64(m), p[m:]
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// TestFiveGigabytes: an upload and a download of 5 GB and more than an hour each, with
// the default time-outs, arrive byte for byte.
func TestFiveGigabytes(t *testing.T) {
	race.TooSlow(t, "TestGoAwayUnderLoad has many bodies at once")
	size := int64(5 << 30)
	if testing.Short() || race.Enabled {
		size = 256 << 20
	}
	synctest.Test(t, func(t *testing.T) {
		client := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				n, err := compare(r.Body)
				fmt.Fprint(w, n, err)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.Copy(w, &slow{size: size})
		})
		began := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://gateway/file", &slow{size: size})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := fmt.Sprint(size, error(nil)); err != nil || resp.StatusCode != 200 || string(text) != want {
			t.Errorf("the upload: %d %q, %v, want %q", resp.StatusCode, text, err, want)
		}
		if resp, err = client.Get("http://gateway/file"); err != nil {
			t.Fatal(err)
		}
		n, err := compare(resp.Body)
		_ = resp.Body.Close()
		if err != nil || n != size {
			t.Errorf("the download: %d of %d bytes, %v", n, size, err)
		}
		if took := time.Since(began); took < 2*time.Hour {
			t.Errorf("both took %v, and should have been slow", took)
		}
	})
}

// TestKeyedBodyThatStandsStill: a caller who stops sending a small body does not keep its
// place.
func TestKeyedBodyThatStandsStill(t *testing.T) {
	for name, framing := range map[string]string{"of a length": "Content-Length: 10\r\n\r\nhello", "in chunks": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := gateway.New(gateway.Config{Routes: []gateway.Route{{
					Prefix: "/", Target: parse(t, "http://upstream"), Retryer: retryer(t, forbear.Policy{}),
					Transport: &http.Transport{DialContext: pipetest.New().Dial},
					Ingress:   &gateway.Ingress{Store: &memstore.Idempotency{}, Options: idempotency.Options{Scope: idempotency.SingleTenant()}},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				front, srv := pipetest.New(), gateway.NewServer(g)
				go func() { _ = srv.Serve(gateway.Listener(front, nil, nil)) }()
				defer srv.Close()
				c, err := front.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Hour))
				_, _ = io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: one\r\n"+framing)
				began := time.Now()
				if text, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408 ") || time.Since(began) != 5*time.Second {
					t.Errorf("got %q, %v, after %v", text, err, time.Since(began))
				}
			})
		})
	}
}

// TestTargetThatPauses: a target that responds meanwhile may take its time with the rest
// of an upload, over either version of HTTP.
func TestTargetThatPauses(t *testing.T) {
	const length = 8 << 20 // more than is sent ahead
	for name, version := range map[string]func(*http.Protocols){"HTTP/1": http1, "HTTP/2": http2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
					control := http.NewResponseController(w)
					_ = control.EnableFullDuplex()
					for range 30 {
						_, _ = io.WriteString(w, ".")
						_ = control.Flush()
						time.Sleep(10 * time.Second)
					}
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n, err)
				})
				transport := client.Transport.(*http.Transport)
				transport.Protocols = &http.Protocols{}
				version(transport.Protocols)
				transport.Protocols.SetHTTP1(name == "HTTP/1")
				resp, err := client.Post("http://gateway/", "text/plain", bytes.NewReader(make([]byte, length)))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil || !strings.HasSuffix(string(text), fmt.Sprint(length, nil)) {
					t.Errorf("got %q, %v", text, err)
				}
			})
		})
	}
}
