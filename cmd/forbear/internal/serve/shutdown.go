package serve

import (
	"context"
	"log/slog"
	"net/http"
)

// shutdown ends the gateway after ctx has ended. The order matters:
//
//  1. /health/ready reports 503, so that a load balancer sends no more.
//  2. Calls under way get the drain time, and are cut off after it.
//  3. Telemetry is sent last, within what is left of that time, so that the
//     spans of the last calls are in it.
//
// The deferred calls of run then stop the admin endpoint, the idempotency
// records and the deliveries, in that order: a call under way may still have
// written to either.
func (s *server) shutdown(ctx context.Context, srv *http.Server) {
	s.live.drain()
	s.log.Info("stopping", slog.Duration("drain", s.drain))
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	if err := srv.Shutdown(limited); err != nil {
		s.log.Warn("calls under way were cut off", slog.String("error", err.Error()))
		_ = srv.Close()
	}
	s.watch.close(limited)
}

// ended stops a part and logs what went wrong. The exit code stays 0: the
// process has done what the signal asked for, and what could not be written back
// is taken up again by the next one, when its lease runs out.
func (s *server) ended(fault string, stop func() error) {
	if err := stop(); err != nil {
		s.log.Error(fault, slog.String("error", err.Error()))
	}
}

// close ends what configure started: it also runs where run has failed.
func (s *server) close() {
	s.fleet.close()
	s.probes.close()
	if s.sample != nil {
		_ = s.sample.Close()
	}
}
