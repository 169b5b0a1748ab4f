package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/storm/page"
)

// serve shows the page until ctx ends. It simulates at the request of any
// page that reaches it: its default address is therefore loopback, and its
// timeouts are short.
func (s *sim) serve(ctx context.Context, _ string) int {
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return s.std.Fail("sim serve: %v", err)
	}
	srv := &http.Server{
		Handler:           page.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		// A scenario is a few kilobytes: a slow sender has no business
		// here.
		ReadTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute,
	}
	// The address is printed after listening, since port 0 picks one.
	fmt.Fprintf(s.std.Out, "The retry-storm simulator is at http://%s/\n", l.Addr())
	// A page that is being sent may finish, within two seconds.
	context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = srv.Shutdown(limited)
	})
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return s.std.Fail("sim serve: %v", err)
	}
	return cli.ExitOK
}
