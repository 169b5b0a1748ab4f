package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// server is one run of serve. The flags fill in its first fields; configure
// makes the rest from the policy file, and run starts it. After run has begun,
// only the goroutine of follow changes what a reload replaces.
type server struct {
	out io.Writer // for the greeting
	log *slog.Logger

	path  string        // of the policy file, or ""
	every time.Duration // between two looks at the policy file; 0: only on SIGHUP
	drain time.Duration // for calls under way after a signal

	delivery delivery
	admin    adminFlags
	fleet    fleet

	// The policy in charge, and what was made of it.
	file *policyfile.File
	seen fileStamp       // of the file that was read last
	live live            // the gateway of the moment
	kept map[string]kept // by dependency, across reloads

	probes  probes
	watch   *watch
	ingress ingress
	sample  *http.Server // the flaky upstream, or nil
}

// configure reads the policy file, or readies the sample, and builds the
// gateway. It opens no listener but the sample's, so that a policy file with
// faults is refused before anything is served.
func (s *server) configure(ctx context.Context) (err error) {
	if s.path == "" {
		err = s.startSample()
	} else {
		s.seen = s.stamp(fileStamp{})
		s.file, err = policyfile.Load(s.path)
	}
	if err != nil {
		return err
	}
	if len(s.file.Gateway.Routes) == 0 {
		return fmt.Errorf("%s has no gateway.routes: nothing to serve", s.file.Name)
	}
	if s.watch, err = newWatch(ctx, s.log, s.file.Service, !s.file.Observability.NoMetrics); err != nil {
		return err
	}
	return s.apply(s.file)
}

// run serves until ctx ends, and then lets what is under way finish. The
// gateway's address is taken first and opened to callers last: one that is in
// use must not leave deliveries running, and a caller must not meet a gateway
// whose database is not open yet.
func (s *server) run(ctx context.Context, address string) error {
	secured, err := s.secured()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if err := s.delivery.start(ctx, address, s.watch); err != nil {
		return errors.Join(err, l.Close())
	}
	defer s.ended("delivery did not end well", s.delivery.stop)
	defer s.ended("the idempotency records were not closed well", s.ingress.stop)
	if err := s.startIngress(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	adminBase, stopAdmin, err := s.admin.start(l.Addr(), s.watch)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stopAdmin()
	go s.watch.flush(ctx)
	// The delivery API is outermost: its requests are the operator's, and do not
	// count as incoming calls.
	srv := gateway.NewServer(s.delivery.mount(s.watch.inbound(&s.live)))
	srv.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(gateway.Listener(l, secured, s.log)) }()
	if s.path != "" {
		// The handler is in place before the greeting: a script may send
		// SIGHUP as soon as it reads that serve is ready.
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		s.greet(s.scheme()+"://"+l.Addr().String(), adminBase)
		go s.follow(ctx, hangups)
	} else {
		s.greetSample(s.scheme()+"://"+l.Addr().String(), adminBase)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		s.shutdown(ctx, srv)
		return nil
	}
}

// greet says where the gateway is, and what it forwards where. Scripts and tests
// read the address off the first line: the port may be one that the system
// chose.
func (s *server) greet(base, admin string) {
	fmt.Fprintf(s.out, "forbear gateway on %s\n", base)
	for _, r := range s.file.Gateway.Routes {
		fmt.Fprintf(s.out, "  %-24s -> %s\n", cmp.Or(r.Prefix, r.Host), r.Dependency)
	}
	if admin != "" {
		fmt.Fprintf(s.out, "admin on %[1]s: /metrics, forbear top --admin %[1]s\n", admin)
	}
}
