package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// An address whose connections no one accepts is found out, also beside one that works,
// and a response of any status is one.
func TestRespond(t *testing.T) {
	open := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	works, deaf := open(), open()
	srv := gateway.NewServer(http.NotFoundHandler())
	go func() { _ = srv.Serve(works) }()
	defer srv.Close()
	s := &server{}
	if err := s.respond(t.Context(), []net.Listener{works, works}, time.Minute); err != nil {
		t.Errorf("an address that works: %v", err)
	}
	err := s.respond(t.Context(), []net.Listener{works, deaf}, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), deaf.Addr().String()) {
		t.Errorf("an address that accepts nothing: %v", err)
	}
	_ = deaf.Close()
	if err := s.respond(t.Context(), []net.Listener{deaf}, time.Minute); err == nil {
		t.Error("an address that is closed responds")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.watchdog(ended, nil) // returns
}

// Behind TLS a process that refuses the look is one that lives; one that says nothing
// is not.
func TestRespondsBehindTLS(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"open":                                 {},
		"it demands a certificate":             {ClientAuth: tls.RequireAndVerifyClientCert},
		"it demands a certificate, by TLS 1.2": {ClientAuth: tls.RequireAndVerifyClientCert, MaxVersion: tls.VersionTLS12},
		"it knows no such name": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, errors.New("no such name")
		}},
	} {
		srv := httptest.NewUnstartedServer(http.NotFoundHandler())
		srv.TLS, srv.Config.ErrorLog = config, log.New(io.Discard, "", 0)
		srv.StartTLS()
		if err := respondsAt(t.Context(), srv.Listener.Addr(), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := respondsAt(ctx, deaf.Addr(), true); err == nil {
		t.Error("an address that accepts nothing responds")
	}
}
