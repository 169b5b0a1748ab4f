package serve

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

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
	if s.before != nil {
		s.look() // a SIGHUP may have gone to the process before this one
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
			s.notify(s.systemd.Reloading)
			s.seen = s.stamp(s.seen)
			s.reload()
			s.notify(s.systemd.Ready)
		case <-tick:
			s.look()
		}
	}
}

// look reloads when the file's contents have changed.
func (s *server) look() {
	before := s.seen
	if s.seen = s.stamp(before); !bytes.Equal(s.seen.data, before.data) {
		s.reload()
	}
}

// reload reads the policy file anew. A file that cannot be used leaves the old
// policy in charge, and the log says so: a slip in an editor must not take the
// gateway down.
func (s *server) reload() {
	file, err := policyfile.Load(s.path)
	if err == nil {
		err = s.delivery.servable(file)
	}
	old := s.file
	if err == nil && old.HasGateway() && !file.HasGateway() {
		err = errors.New("it has no section gateway any more: without routes forbear serves deliveries alone, from the next start on")
	}
	if err == nil {
		err = s.apply(file)
	}
	if err != nil {
		s.refused(err)
		return
	}
	s.warnOfKeys(file)
	changes := policyfile.Diff(old, file)
	s.log.Info("the policy file is in charge", slog.String("file", s.path), slog.Int("changes", len(changes)))
	for _, c := range changes {
		s.log.Info("policy changed", slog.String("change", c.Text))
	}
	if why := file.AsksForDeliveries(); why != "" && s.delivery.why == "" && !s.delivery.off {
		s.log.Warn("deliveries and their API begin at the next start", slog.String("asked_by", why))
	}
	if !slices.Equal(old.Gateway.Listen, file.Gateway.Listen) {
		s.log.Warn("gateway.listen takes effect at the next start, or with SIGUSR2", slog.Any("listen", file.Gateway.Listen))
	}
	if old.Gateway.TLS != file.Gateway.TLS {
		s.log.Warn("gateway.tls takes effect at the next start; the files that it named are still followed")
	}
}

// warnOfFlags logs the flags that a later version will refuse.
func (s *server) warnOfFlags() {
	s.given.Visit(func(f *flag.Flag) {
		if f.Name == "drain" {
			s.log.Warn("deprecated flag: --drain is called --drain-timeout now, and v0.2.0 refuses the former name")
		}
	})
}

// warnOfKeys logs the keys that a later version will refuse.
func (s *server) warnOfKeys(file *policyfile.File) {
	for _, d := range file.Deprecated {
		s.log.Warn("deprecated key in the policy file", slog.String("key", d.Error()))
	}
}

// refused logs why a policy file is not taken: each fault on a line of its own,
// with its position in the file. The old configuration serves on: a typing mistake
// must not become an outage.
func (s *server) refused(err error) {
	s.log.Error("the policy file is refused, the old policy stays", slog.String("file", s.path))
	faults := []string{err.Error()}
	if e, ok := errors.AsType[*policyfile.Error](err); ok {
		faults = faults[:0]
		for _, f := range e.Faults {
			faults = append(faults, f.Error())
		}
	}
	for _, f := range faults {
		s.log.Error("fault of the policy file", slog.String("fault", f))
	}
}

// fileStamp is what a file was at the last look. The zero value is that of a file
// that was never read.
type fileStamp struct {
	info os.FileInfo
	data []byte
}

// stamp reads the file when it is another one than last, or newer: a look costs
// one stat while nothing happens. A file that is gone for a moment, as while it
// is being replaced, has not changed.
func (s *server) stamp(last fileStamp) fileStamp {
	info, err := os.Stat(s.path)
	if err != nil {
		return last
	}
	if last.info != nil && os.SameFile(info, last.info) && info.ModTime().Equal(last.info.ModTime()) && info.Size() == last.info.Size() {
		return last
	}
	data, err := policyfile.Read(s.path)
	if err != nil {
		return last
	}
	return fileStamp{info, data}
}
