package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forbear-go/forbear/cmd/forbear/internal/handover"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/policyfile"
)

// server is one run of serve. The flags fill in its first fields; configure
// makes the rest from the policy file, and run starts it. After run has begun,
// only the goroutine of follow changes what a reload replaces.
type server struct {
	out io.Writer // for the greeting
	log *slog.Logger

	address string // that others could reach it by, from configure on
	said    string // about that address in the log

	path   string        // of the policy file, or ""
	every  time.Duration // between two looks at the policy file; 0: only on SIGHUP
	listen addresses
	drain  drain

	given    *flag.FlagSet // the command line
	delivery delivery
	admin    adminFlags
	fleet    fleet

	// The policy in charge, and what was made of it.
	file   *policyfile.File
	seen   []byte      // contents of the file at the last look
	unread int         // looks at the file in a row that have failed
	faulty bool        // seen was refused
	stale  atomic.Bool // the file is not what is in charge, for the metrics
	tls    *tls.Config // of the gateway's own addresses, or nil; of the first policy

	gateway      atomic.Pointer[gateway.Gateway]
	bodies       *httpretry.BodyMemory // of all requests, across reloads
	dependencies map[string]dependency // by name, across reloads
	readiness    readiness

	watch   *watch
	ingress ingress
	sample  *http.Server // the flaky upstream, or nil

	// From the start to the end of the process.
	sockets  *handover.Sockets
	underWay underWay
	drained  time.Time             // when the drain is to be over, as far as that is known
	hup      chan os.Signal        // where SIGHUP arrives; nil without a file
	before   *handover.Predecessor // nil where this process replaces none
	next     *handover.Successor   // nil until another one replaces this
}

// configure reads the policy file, or readies the sample, and builds the
// gateway. It opens no listener but the sample's, so that a policy file with
// faults is refused before anything is served.
func (s *server) configure(ctx context.Context) (err error) {
	if s.path == "" {
		err = s.startSample()
	} else {
		s.seen, _ = s.contents() // Load has the error
		s.file, err = policyfile.Load(s.path)
	}
	if err != nil {
		return err
	}
	s.warnOfFlags()
	s.warnOfKeys(s.file)
	s.address = s.outermost()
	s.delivery.decide(s.given, s.file, s.path == "")
	s.delivery.warnOfUnused(s.log)
	if err := s.delivery.servable(s.file); err != nil {
		return err
	}
	if s.watch, err = newWatch(ctx, s.log, s.file.Service, !s.file.Observability.NoMetrics); err != nil {
		return err
	}
	s.watch.followFile(s.path, &s.stale)
	s.bodies = httpretry.NewBodyMemory(bodyShare())
	s.watch.followBodies(s.bodies)
	// Both read files that the policy file names: one run shows all that are missing.
	var own error
	s.tls, own = s.secured()
	return errors.Join(s.apply(s.file), own)
}

// run serves until ctx ends or another process takes over, and then lets what is under
// way finish. The gateway's addresses are taken first and opened to callers last: one
// that is in use must not leave deliveries running, and a caller must not meet a
// gateway whose database is not open yet. The admin endpoint comes before the
// deliveries, so that it ends after them.
func (s *server) run(ctx context.Context) error {
	s.hup = s.hangups()
	defer signal.Stop(s.hup)
	defer s.ended("a listener did not close", func() error { return s.sockets.Close() })
	listeners, err := s.listeners(ctx)
	if err != nil {
		return err
	}
	s.admin.ready, s.admin.api = s.readiness.state, s.delivery.handler
	if s.before != nil { // which serves meanwhile, and has the socket of the metrics, too
		s.readiness.serving.Store(true)
	}
	adminBase, stopAdmin, err := s.admin.start(ctx, s.sockets, firstTCP(listeners), s.watch)
	if err != nil {
		return err
	}
	defer stopAdmin()
	defer s.sendTelemetry()
	s.delivery.options.Beside = s.before != nil
	s.delivery.options.Instance = s.admin.shown()
	if err := s.delivery.start(ctx, s.sockets, widest(listeners), s.watch); err != nil {
		return err
	}
	if db := s.delivery.database(); db != nil {
		s.readiness.follow(db, s.log)
	}
	defer s.ended("deliveries did not stop cleanly", s.delivery.stop)
	defer s.ended("the idempotency records did not close cleanly", s.ingress.stop)
	if err := s.startIngress(ctx); err != nil {
		return err
	}
	go s.watch.flush(ctx)
	// The delivery API is outermost: its requests are the operator's, and do not
	// count as incoming calls.
	srv := newGraceful(s.underWay.count(s.delivery.mount(s.watch.inbound(http.HandlerFunc(s.serveGateway)))), s.log)
	return s.serve(ctx, srv, listeners, adminBase)
}

// serve serves all listeners until the end. A listener that fails ends the process:
// one that is deaf on some of its addresses would look alive.
func (s *server) serve(ctx context.Context, srv *graceful, listeners []net.Listener, adminBase string) error {
	// The handlers are in place before the greeting: a script may send a signal as
	// soon as it reads that serve is ready.
	replace := make(chan os.Signal, 1)
	if len(handover.Signals) > 0 {
		signal.Notify(replace, handover.Signals...)
		defer signal.Stop(replace)
	}
	following, unfollow := context.WithCancel(ctx)
	var followed sync.WaitGroup
	defer followed.Wait() // a reload uses what the end closes
	defer unfollow()
	s.readiness.serving.Store(true)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		srv.accept(l, s.tls, failed)
	}
	s.greet(listeners, adminBase)
	s.started()
	followed.Go(func() { s.follow(following, s.hup) })
	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // to the end of the drain
	defer unwatch()
	followed.Go(func() { s.watchdog(watched, listeners) })
	for {
		select {
		case err := <-failed:
			return err
		case <-replace:
			if !s.replace(ctx) {
				continue
			}
			unfollow()
			unwatch() // systemd hears the other one now
		case <-ctx.Done():
		}
		s.shutdown(ctx, srv)
		return nil
	}
}

// started says to those who wait that this process serves: the one that it replaces,
// and systemd.
func (s *server) started() {
	s.committed()
	if err := s.before.Ready(); err != nil {
		s.log.Warn("the old process was not notified that this one is ready", slog.String("error", err.Error()))
	}
	s.notify(daemon.SdNotifyReady, "STATUS=serving")
}

// greet says where the gateway is, and what it forwards where. Scripts and tests
// read the address off the first line: the port may be one that the system
// chose. It is one write, so that a reader has all of it or nothing.
func (s *server) greet(listeners []net.Listener, admin string) {
	base := s.mainOf(listeners)
	if s.path == "" {
		s.greetSample(base, admin)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "forbear gateway on %s\n", base)
	for _, l := range listeners {
		if other := s.baseOf(l); other != base {
			fmt.Fprintf(&b, "  and on %s\n", other)
		}
	}
	for _, r := range s.file.Gateway.Routes {
		fmt.Fprintf(&b, "  %-24s -> %s\n", strings.Join(append(slices.Clip(r.Methods), r.Host+r.Prefix), " "), r.Dependency)
	}
	fmt.Fprintln(&b, s.delivery.greeting(base))
	if admin != "" {
		fmt.Fprintf(&b, "admin on %[1]s: the console, /metrics, forbear top --admin %[1]s\n", admin)
	}
	b.WriteString(s.admin.greeting())
	_, _ = io.WriteString(s.out, b.String())
}
