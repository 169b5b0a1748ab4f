package dispatch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The guard holds for transports with certificates too.
func TestTLSTransportIsGuarded(t *testing.T) {
	sink := httptest.NewTLSServer(http.NotFoundHandler())
	defer sink.Close()
	s := &tlsTransports{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, sink.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := s.transport(&tlsMaterial{}).RoundTrip(req); !errors.Is(err, webhook.ErrBlocked) {
		t.Errorf("%+v, %v", resp, err)
	}
}

// Endpoints with the same settings share a transport, and one without use goes.
func TestTLSTransportsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tlsTransports{}
		a, again, b := s.transport(&tlsMaterial{}), s.transport(&tlsMaterial{}), s.transport(&tlsMaterial{sum: [32]byte{1}})
		if a != again || a == b || len(s.all) != 2 {
			t.Errorf("%d transports", len(s.all))
		}
		time.Sleep(tlsUnused / 2)
		s.transport(&tlsMaterial{})
		time.Sleep(tlsUnused/2 + time.Second)
		s.transport(&tlsMaterial{sum: [32]byte{2}})
		if len(s.all) != 2 || s.all[[32]byte{1}] != nil {
			t.Errorf("%d transports are left", len(s.all))
		}
	})
}
