package dispatch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/certtest"
	"github.com/forbear-go/forbear/webhook"
)

// The guard holds for transports with certificates too.
func TestTLSTransportIsGuarded(t *testing.T) {
	sink := httptest.NewTLSServer(http.NotFoundHandler())
	defer sink.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, sink.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := secureTransport(webhook.Guard{}, &tlsMaterial{}).RoundTrip(req); !errors.Is(err, webhook.ErrBlocked) {
		t.Errorf("%+v, %v", resp, err)
	}
}

// Connections are kept while the settings are the same, and what they name.
func TestTLSConnectionsAreKept(t *testing.T) {
	one, other := certtest.NewCA(t, "one"), certtest.NewCA(t, "other")
	t.Setenv("TEST_CA", string(one.PEM))
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{TLS: &webhook.TLS{CA: "env:CA"}})
		transport := func() http.RoundTripper {
			rt, err := r.to.endpoint().transport(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * tlsLook)
			return rt
		}
		first := transport()
		_, err := r.d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error { e.Concurrency = 3; return nil })
		if transport() != first || err != nil {
			t.Errorf("another change makes new connections, %v", err)
		}
		t.Setenv("TEST_CA", string(other.PEM))
		if transport() == first {
			t.Error("other authorities have no effect")
		}
	})
}
