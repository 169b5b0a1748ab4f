package httpretry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestResetUploadIsNotWaitedFor: over HTTP/2, when the server has reset an upload, the next
// attempt begins at once, while the caller waits for a response before it sends more. It
// gets the whole body, and so what the Read of the first attempt had been waiting for.
func TestResetUploadIsNotWaitedFor(t *testing.T) {
	const begin, rest = "hello, ", "world"
	attempts := make(chan int, 9)
	n := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got [len(begin)]byte
		_, _ = io.ReadFull(r.Body, got[:])
		n++
		if attempts <- n; n == 1 {
			panic(http.ErrAbortHandler)
		}
		after, err := io.ReadAll(r.Body)
		if string(got[:])+string(after) != begin+rest || err != nil {
			t.Errorf("the second attempt got %q and %q, %v", got, after, err)
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	r, err := forbear.New("up", forbear.Policy{Backoff: forbear.Backoff{Base: time.Millisecond, Cap: time.Millisecond}}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	source, caller := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL, source)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		resp, err := httpretry.NewTransport(srv.Client().Transport, r).RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		ended <- err
	}()
	_, _ = io.WriteString(caller, begin)
	for want := 1; want <= 2; want++ {
		select {
		case <-attempts:
		case <-time.After(10 * time.Second):
			_ = caller.Close()
			t.Fatalf("attempt %d waits for a caller who waits for it: %v", want, <-ended)
		}
	}
	_, _ = io.WriteString(caller, rest)
	_ = caller.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
