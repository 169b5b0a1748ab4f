package serve

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/wait"
)

// drain says how long the end may take, by the flags.
type drain struct {
	delay   time.Duration // from the signal until the listeners close
	timeout time.Duration // for the calls under way after that
}

// The defaults of the two. Together with what deliveries take they are below the
// 30 s that Kubernetes leaves, and the 90 s of systemd.
const (
	defaultDrainDelay   = 5 * time.Second
	defaultDrainTimeout = 20 * time.Second
)

func (d *drain) register(f *flag.FlagSet) {
	f.DurationVar(&d.delay, "drain-delay", defaultDrainDelay, "after SIGTERM, how long serve still accepts while it is not ready")
	f.DurationVar(&d.timeout, "drain-timeout", defaultDrainTimeout, "how long current calls may take after that")
	f.DurationVar(&d.timeout, "drain", defaultDrainTimeout, "the old name of --drain-timeout; v0.2.0 refuses it")
}

// shutdown ends the gateway after ctx has ended, or after another process has taken
// its place. The order matters:
//
//  1. /health/ready reports 503, so that a load balancer sends no more, and each
//     response asks its caller to close the connection. Calls are still served: the
//     load balancer takes a moment to look, and a caller to come back elsewhere.
//  2. The listeners close. A connection that has just come brings its first call, and
//     those that wait for another one are closed.
//  3. Calls under way get the drain time, and are cut off after it.
//
// Where another process has taken over, the listeners close first, since it accepts
// by now, and readiness is its to report. The delay is then for connections that
// callers keep: each learns by a response that it is to be closed, and none is closed
// under a request that has just been sent.
//
// The deferred calls of run then end the idempotency records and the deliveries, in that
// order, since a call under way may still have written to both. Telemetry is sent after
// them, within what is left of the time, so that the spans of the last calls and of the
// last deliveries are in it. The admin endpoint ends last: the metrics are there to the
// end. A second signal ends the waiting.
func (s *server) shutdown(ctx context.Context, srv *graceful) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(again)
	base, hurry := context.WithCancel(context.WithoutCancel(ctx))
	defer hurry()
	go s.hurried(base, again, hurry)
	s.underWay.drain()
	delay := s.drain.delay
	if s.next == nil {
		s.readiness.draining.Store(true)
		s.notify(daemon.SdNotifyStopping, "STATUS=draining")
		if delay = s.graceOf(ctx); delay > 0 {
			s.log.Info("draining: not ready, but still accepting", slog.Int64("delay_ms", delay.Milliseconds()))
		}
	} else {
		s.delivery.pause()
		s.stopAccepting(srv)
	}
	wait.Sleep(base, delay)
	s.stopAccepting(srv)
	s.log.Info("stopping", slog.Int64("calls", s.underWay.calls.Load()), slog.Int64("drain_ms", s.drain.timeout.Milliseconds()))
	limited, cancel := context.WithTimeout(base, s.drain.timeout)
	defer cancel()
	if err := errors.Join(srv.end(limited), s.underWay.wait(limited)); err != nil {
		s.log.Warn("current calls were cut off: raise --drain-timeout", slog.Int64("calls", s.underWay.calls.Load()))
		_ = srv.Close()
	}
	if limited.Err() == nil {
		s.drained, _ = limited.Deadline()
	}
}

// sendTelemetry sends what is left of it until the drain is to be over, and for a second
// at least.
func (s *server) sendTelemetry() {
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Until(s.drained), time.Second))
	defer cancel()
	s.watch.close(ctx)
}

// graceOf returns how long to accept calls after ctx has ended. A person at a terminal
// who presses Ctrl-C has no load balancer that must look first.
func (s *server) graceOf(ctx context.Context) time.Duration {
	if i, ok := errors.AsType[cli.Interrupted](context.Cause(ctx)); ok && i.Signal == syscall.SIGTERM {
		return s.drain.delay
	}
	return 0
}

// hurried calls hurry at the next signal, until ctx ends. If a successor gets the signals
// too, the first signal is meant for that.
func (s *server) hurried(ctx context.Context, again <-chan os.Signal, hurry func()) {
	spare := 0
	if s.next != nil {
		spare = 1
	}
	for {
		select {
		case sig := <-again:
			if spare--; spare < 0 {
				s.log.Warn("second signal: no longer waiting", slog.String("signal", sig.String()))
				hurry()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// stopAccepting closes the gateway's listeners, and returns when no connection can
// come any more. It may be called more than once.
func (s *server) stopAccepting(srv *graceful) {
	purposes := []string{forGateway}
	if s.next != nil {
		purposes = nil // the successor has the others too
	}
	if err := s.sockets.Close(purposes...); err != nil {
		s.log.Warn("a listener did not close", slog.String("error", err.Error()))
	}
	srv.serving.Wait()
}

// closedByUs reports whether a server ended because its listener was closed.
func closedByUs(err error) bool {
	return errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed)
}

// ended stops a part and logs what went wrong. The exit code stays 0: the
// process has done what the signal asked for, and what could not be written back
// is taken up again by the next one, when its lease runs out.
func (s *server) ended(fault string, stop func() error) {
	if err := stop(); err != nil {
		s.log.Error(fault, slog.String("error", err.Error()))
	}
}

// close ends what configure started: it also runs where run has failed. What this
// process holds of shared budgets is given back, so that the others need not wait for
// its lease to run out.
func (s *server) close() {
	closeUnused(s.dependencies, nil)
	s.fleet.close()
	if s.sample != nil {
		_ = s.sample.Close()
	}
}
