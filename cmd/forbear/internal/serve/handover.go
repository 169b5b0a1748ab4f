package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forbear-go/forbear/cmd/forbear/internal/handover"
)

// replace starts a new process with this one's sockets. It reports whether that one
// serves; otherwise this one goes on, and the log says why.
func (s *server) replace(ctx context.Context) bool {
	s.log.Info("handing over: starting a new process")
	// From before the new process is ready: none may be lost in between.
	passed := make(chan os.Signal, 8)
	signal.Notify(passed, append([]os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP}, handover.Signals...)...)
	next, err := s.startNext(ctx)
	if err != nil {
		signal.Stop(passed)
		s.log.Error("the handover failed: this process stays in charge", slog.String("error", err.Error()))
		return false
	}
	s.next = next
	s.sockets.Given()
	if !next.Stays() {
		// This process says so: systemd may not believe another one.
		s.notify(fmt.Sprintf("MAINPID=%d", next.PID()), daemon.SdNotifyReady)
	}
	go s.passOn(ctx, passed)
	s.log.Info("handed over: draining", slog.Int("successor", next.PID()))
	return true
}

// passOn passes on what is meant for the process that serves, where this one stays
// between it and those who send signals, until the end of the process. One that another
// process stays for passes on what comes before that one knows the successor; an end reaches
// all of them. Without either, those who send signals know the successor by now, but for an
// end that came when it had just become ready.
func (s *server) passOn(ctx context.Context, passed chan os.Signal) {
	if !s.next.Stays() && !s.before.Supervised() {
		if ctx.Err() != nil {
			s.next.Pass(syscall.SIGTERM)
		}
		return
	}
	for sig := range passed {
		if end := sig == syscall.SIGTERM || sig == os.Interrupt; s.next.Stays() || !end {
			s.next.Pass(sig)
		}
	}
}

// startNext starts the new process and waits until it is ready. As the first process
// of a container, and wherever systemd does not follow, this one stays for those who
// wait for it.
func (s *server) startNext(ctx context.Context) (*handover.Successor, error) {
	files, names, err := s.sockets.Files()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	stay := os.Getpid() == 1 || !followed()
	return handover.Start(ctx, s.before, files, names, stay)
}

// stay waits for the successors where this process stays for them, and returns the
// exit code.
func (s *server) stay(code int) int {
	if !s.next.Stays() {
		return code
	}
	debug.FreeOSMemory() // this process does nothing any more
	return s.next.Wait()
}
