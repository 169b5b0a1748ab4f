package httpretry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestProxyThatRefusesToConnect: a tunnel that a proxy did not make is a failure of
// the way: retried when it may pass, and the request was never sent.
func TestProxyThatRefusesToConnect(t *testing.T) {
	for _, tc := range []struct {
		status   int
		method   string
		attempts int64
		label    string
	}{
		{502, http.MethodGet, 4, "proxy_502"},
		{503, http.MethodGet, 4, "proxy_503"},
		{504, http.MethodGet, 4, "proxy_504"},
		{407, http.MethodGet, 1, "proxy_407"},
		{403, http.MethodGet, 1, "proxy_403"},
		{503, http.MethodPost, 1, "proxy_503"}, // no key, no retry
	} {
		var asked atomic.Int64
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(tc.status)
		}))
		u, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		base := &http.Transport{Proxy: http.ProxyURL(u)}
		resp, err := httpretry.NewTransport(base, quiet(t, fast)).RoundTrip(newRequest(t, tc.method, "https://dependency.test/", "", ""))
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("%d: status %d through a proxy that refuses", tc.status, resp.StatusCode)
		}
		base.CloseIdleConnections()
		proxy.Close()
		e, ok := errors.AsType[*forbear.Error](err)
		if !ok || e.Type != tc.label || asked.Load() != tc.attempts {
			t.Errorf("%d: %+v after %d CONNECTs, want %s after %d", tc.status, e, asked.Load(), tc.label, tc.attempts)
		}
	}
	tunnel := newRequest(t, http.MethodPost, "https://dependency.test/", "", "")
	bare := errors.New("Bad Gateway")
	if f := httpretry.Classify(tunnel, nil, bare); !f.Unsent || f.Err != bare {
		t.Errorf("over https: %+v, want what was certainly not sent", f)
	}
	// Without https there is no tunnel: the words are another's.
	req := newRequest(t, http.MethodGet, "http://dependency.test/", "", "")
	if f := httpretry.Classify(req, nil, errors.New("Bad Gateway")); f.Class != forbear.ClassUnknown {
		t.Errorf("over http: %+v, want unknown", f)
	}
}
