package httpretry_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// counted is a body that counts how often it is closed.
type counted struct {
	io.Reader
	closed *atomic.Int32
}

func (c counted) Close() error { c.closed.Add(1); return nil }

// both is a faulty transport: it returns a response and an error, as some that follow
// redirects or check responses do.
type both struct{ sent, closed atomic.Int32 }

func (b *both) RoundTrip(r *http.Request) (*http.Response, error) {
	b.sent.Add(1)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: counted{http.NoBody, &b.closed},
	}, errors.New("it is not what was wanted")
}

// TestBodyBesideAnErrorIsClosed: the caller of a RoundTripper that returns an error does not look
// at the response, as http.Client does not: its body is closed here, and so its
// connection is free.
func TestBodyBesideAnErrorIsClosed(t *testing.T) {
	r, err := forbear.New("upstream", forbear.Policy{Idempotent: true}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	below := &both{}
	client := &http.Client{Transport: httpretry.NewTransport(below, r)}
	resp, err := client.Get("http://upstream.test/a")
	if err == nil || resp != nil {
		t.Fatalf("got %v, %v; want the error", resp, err)
	}
	if sent, closed := below.sent.Load(), below.closed.Load(); sent == 0 || closed != sent {
		t.Errorf("%d bodies of %d were closed", closed, sent)
	}
}
