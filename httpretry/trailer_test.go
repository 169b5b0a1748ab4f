package httpretry_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/forbear-go/forbear/httpretry"
)

// lateTrailer is a body that sets a trailer of its request when it ends, as net/http
// has it.
type lateTrailer struct {
	io.Reader
	req *http.Request
}

func (b *lateTrailer) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.req.Trailer.Set("X-Check", "7")
	}
	return n, err
}

func (b *lateTrailer) Close() error { return nil }

type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTrailersOfEachAttempt: an attempt that is over may still read the body, and come to
// its end, while the next one writes the names of the trailers. The two share no map, and
// each has its trailers when it has read the body itself.
func TestTrailersOfEachAttempt(t *testing.T) {
	for _, options := range [][]httpretry.Option{nil, bare()} {
		source, write := io.Pipe()
		read := make(chan http.Header)
		attempts := 0
		next := trips(func(req *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				go func() {
					_, _ = io.Copy(io.Discard, req.Body)
					read <- req.Trailer
				}()
				return status(503)(req)
			}
			_, _ = io.WriteString(write, "all")
			_ = write.Close()
			if first := <-read; first.Get("X-Check") != "7" {
				t.Errorf("the first attempt has the trailers %v at its end", first)
			}
			if v, announced := req.Trailer["X-Check"]; !announced || v != nil {
				t.Errorf("the second attempt has the trailers %v before it has read", req.Trailer)
			}
			text, err := io.ReadAll(req.Body)
			if string(text) != "all" || err != nil || req.Trailer.Get("X-Check") != "7" {
				t.Errorf("the second attempt has sent %q, %v with %v", text, err, req.Trailer)
			}
			again, err := req.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			req.Trailer["X-Check"] = nil
			if text, err := io.ReadAll(again); string(text) != "all" || err != nil || req.Trailer.Get("X-Check") != "7" {
				t.Errorf("once more: %q, %v with %v", text, err, req.Trailer)
			}
			return status(200)(req)
		})
		req := newRequest(t, http.MethodPut, "http://payments.test/", "", "")
		req.Trailer = http.Header{"X-Check": nil}
		req.Body, req.ContentLength = &lateTrailer{source, req}, -1
		resp, err := httpretry.NewTransport(next, quiet(t, fast), options...).RoundTrip(req)
		if err != nil || resp.StatusCode != 200 || attempts != 2 {
			t.Fatalf("after %d attempts: %v, %v", attempts, resp, err)
		}
		_ = resp.Body.Close()
	}
}
