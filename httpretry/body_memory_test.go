package httpretry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestBodyMemoryIsShared: while one body takes the memory, another long one is sent once
// and its error says why; a short one is sent again, and so is a long one afterwards.
func TestBodyMemoryIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := httpretry.NewBodyMemory(1 << 20)
		opts := []httpretry.Option{httpretry.WithBodyLimit(4 << 20), httpretry.WithBodyMemory(memory)}
		put := func(size int, steps ...step) (requests int, e *forbear.Error) {
			s := &script{steps: steps}
			text := strings.Repeat("x", size)
			req, body := streamed(t, text)
			resp, err := over(t, s, fast, opts...).RoundTrip(req)
			if err != nil {
				t.Error(err)
				return 0, nil
			}
			_ = resp.Body.Close()
			for i, r := range s.requests() {
				if r.body != text {
					t.Errorf("request %d of %d bytes had %d", i, size, len(r.body))
				}
			}
			if body.closes() != 1 {
				t.Errorf("the body was closed %d times", body.closes())
			}
			e, _ = httpretry.Outcome(resp)
			return len(s.requests()), e
		}
		slow := func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second)
			return status(503)(r)
		}
		first := make(chan int)
		go func() {
			n, _ := put(900<<10, slow, status(200))
			first <- n
		}()
		synctest.Wait()
		if used := memory.Used(); used < 800<<10 || used > memory.Limit() {
			t.Errorf("the first body takes %d bytes", used)
		}
		n, e := put(900<<10, status(503), status(200))
		const why = "body of 900 KiB without GetBody or Seek; the 1 MiB for the bodies of all requests are taken"
		if n != 1 || !errors.Is(e, forbear.ErrNotReplayable) || !strings.HasSuffix(e.Error(), why) {
			t.Errorf("beside it: %d requests, %v, want it to end with %q", n, e, why)
		}
		if n, e := put(64<<10, status(503), status(200)); n != 2 {
			t.Errorf("a short body: %d requests, %v", n, e)
		}
		if n := <-first; n != 2 {
			t.Errorf("the first body: %d requests", n)
		}
		if n, e := put(900<<10, status(503), status(200)); n != 2 {
			t.Errorf("afterwards: %d requests, %v", n, e)
		}
		if n, e := put(2<<20, status(503), status(200)); n != 1 {
			t.Errorf("longer than all of it: %d requests, %v", n, e)
		}
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes stay taken", used)
		}
	})
}

// TestBodyMemoryEndsWithTheResponse: a body is not kept while it goes on after a response
// that is handed over.
func TestBodyMemoryEndsWithTheResponse(t *testing.T) {
	const size = 1 << 20
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_, _ = io.CopyN(io.Discard, r.Body, size)
		_ = c.Flush()
		n, _ := io.Copy(io.Discard, r.Body)
		if n != size {
			t.Errorf("%d bytes came after the response", n)
		}
	}))
	t.Cleanup(s.Close)
	memory := httpretry.NewBodyMemory(8 << 20)
	upload, feed := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, upload)
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Repeat("x", size)
	kept := make(chan int64, 1)
	go func() {
		_, _ = io.WriteString(feed, part[:size/2])
		kept <- memory.Used()
		_, _ = io.WriteString(feed, part[size/2:])
	}()
	resp, err := httpretry.NewTransport(nil, quiet(t, fast), httpretry.WithBodyLimit(8<<20), httpretry.WithBodyMemory(memory)).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if used := <-kept; used < size/4 {
		t.Errorf("%d bytes were taken before the response", used)
	}
	for end := time.Now().Add(10 * time.Second); memory.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes stay taken", memory.Used())
		}
	}
	_, _ = io.WriteString(feed, part)
	_ = feed.Close()
	_ = readAll(t, resp.Body)
	_ = resp.Body.Close()
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are taken of what came after the response", used)
	}
}
