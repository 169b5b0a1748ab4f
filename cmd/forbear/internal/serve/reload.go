package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forbear-go/forbear/policyfile"
)

// hangups returns where SIGHUP arrives, from now on. To the very end it must be caught:
// a process that drains would end by it. The sample has no file to read again.
func (s *server) hangups() chan os.Signal {
	if s.path == "" {
		return nil
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}

// follow reloads on SIGHUP, and when the file's contents change, until ctx ends.
// It looks at the file instead of subscribing to its folder: editors and
// orchestrators replace files, folders and links to folders, and looking sees
// each of them on every system.
func (s *server) follow(ctx context.Context, hup <-chan os.Signal) {
	if s.path == "" {
		return
	}
	s.review(ctx)
	if s.before != nil {
		s.look(ctx) // a SIGHUP may have gone to the process before this one
	}
	var tick <-chan time.Time // nil, and so never ready, without an interval
	if s.every > 0 {
		t := time.NewTicker(s.every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			s.notify(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec()+"STATUS=reading the policy file")
			reloaded := s.reload(true)
			s.notify(daemon.SdNotifyReady, "STATUS=serving")
			if reloaded {
				s.review(ctx)
			}
		case <-tick:
			s.look(ctx)
		}
	}
}

// look reloads when the file's contents have changed.
func (s *server) look(ctx context.Context) {
	if s.reload(false) {
		s.review(ctx)
	}
}

// lostAfter is how many looks in a row fail before the log says so: a file is gone for a
// moment while it is being replaced.
const lostAfter = 3

// reload takes the file when its contents have changed, or anyhow when asked, and reports
// whether it did.
func (s *server) reload(asked bool) bool {
	data, err := s.contents()
	if err != nil {
		if s.unread++; s.unread == lostAfter || asked {
			s.unread = max(s.unread, lostAfter)
			s.log.Warn("the policy file cannot be read: the old policy stays, but a restart would fail", slog.String("file", s.path), slog.String("error", err.Error()))
		}
		s.note()
		return false
	}
	if s.unread >= lostAfter {
		s.log.Info("the policy file can be read again", slog.String("file", s.path))
	}
	changed := !bytes.Equal(data, s.seen)
	s.seen, s.unread = data, 0
	if changed || asked {
		s.faulty = !s.take()
	}
	s.note()
	return (changed || asked) && !s.faulty
}

// note says in the metrics whether the policy file is what is in charge.
func (s *server) note() { s.stale.Store(s.faulty || s.unread >= lostAfter) }

// take reads the policy file again, and reports whether it is in charge now. A file that cannot
// be used leaves the old policy in charge, and the log says so: a slip in an editor must not
// take the gateway down.
func (s *server) take() bool {
	file, err := policyfile.Load(s.path)
	if err == nil {
		err = s.delivery.servable(file)
	}
	old := s.file
	if err == nil && old.HasGateway() && !file.HasGateway() {
		err = errors.New("it no longer has a gateway section: restart to serve only deliveries")
	}
	if err == nil {
		err = s.apply(file)
	}
	if err != nil {
		s.refused(err)
		return false
	}
	s.warnOfKeys(file)
	changes := policyfile.Diff(old, file)
	s.log.Info("the policy file is in charge", slog.String("file", s.path), slog.Int("changes", len(changes)))
	for _, c := range changes {
		s.log.Info("policy changed", slog.String("change", c.Text))
	}
	if why := file.AsksForDeliveries(); why != "" && s.delivery.why == "" && !s.delivery.off {
		s.log.Warn("the policy file now asks for deliveries: restart to switch them on", slog.String("asked_by", why))
	}
	if !slices.Equal(old.Gateway.Listen, file.Gateway.Listen) {
		s.log.Warn("gateway.listen changed: it takes effect after a restart or SIGUSR2", slog.Any("listen", file.Gateway.Listen))
	}
	if old.Gateway.TLS != file.Gateway.TLS {
		s.log.Warn("gateway.tls changed: it takes effect after a restart; until then the old files are followed")
	}
	return true
}

// refused logs why a policy file is not taken: each fault on a line of its own,
// with its position in the file. The old configuration serves on: a typing mistake
// must not become an outage.
func (s *server) refused(err error) {
	s.log.Error("the policy file has faults: the old policy stays", slog.String("file", s.path))
	faults := []string{err.Error()}
	if e, ok := errors.AsType[*policyfile.Error](err); ok {
		faults = faults[:0]
		for _, f := range e.Faults {
			faults = append(faults, f.Error())
		}
	}
	for _, f := range faults {
		s.log.Error("fault in the policy file", slog.String("fault", f))
	}
}

// contents reads the policy file. A pipe is read once: opening it again would wait for a
// writer.
func (s *server) contents() ([]byte, error) {
	if info, err := os.Stat(s.path); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeDevice) != 0 && s.seen != nil {
		return s.seen, nil
	}
	return policyfile.Read(s.path)
}
