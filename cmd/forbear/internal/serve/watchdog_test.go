package serve

import (
	"context"
	"net"
	"net/http"
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
