// Package certfile holds certificates that are kept in files, and reads them again
// when the files change: certificates live for hours or weeks, and the gateway for
// months.
//
// It reads the files while they are used, once a second, and needs no goroutine. What
// counts is what they hold, so that a file that is renamed over another, and a link that
// Kubernetes replaces, are both seen.
package certfile

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery is the least time between two looks at the files.
const lookEvery = time.Second

// Files names the files, all of which are PEM. Either field group may be empty, and
// the zero value names none.
type Files struct {
	// CA has the authorities to trust, in place of the system's.
	CA string
	// Cert has a certificate and those up to its authority, and Key its key. They
	// may be one file.
	Cert, Key string
}

// Material is what the files held at one time. It does not change: two are equal when
// their pointers are.
type Material struct {
	Pool *x509.CertPool   // nil where Files names no CA
	Cert *tls.Certificate // nil where Files names no certificate
}

// Source is the present material of a set of files. It is safe for concurrent use;
// make it with [Open].
type Source struct {
	log      *slog.Logger
	now      atomic.Pointer[Material]
	nextLook atomic.Int64 // as time.Time.UnixNano
	looking  sync.Mutex   // held by the goroutine that looks; guards what is below
	ca, pair part
	warned   warning
}

// Open reads the files. Later faults of the files are logged to log, which may be nil
// for slog.Default(), and leave what was read earlier in use.
func Open(f Files, log *slog.Logger) (*Source, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a certificate and its key belong together: set both cert and key")
	}
	s := &Source{log: cmp.Or(log, slog.Default())}
	if f.CA != "" {
		s.ca = part{paths: []string{f.CA}, parse: parsePool}
	}
	if f.Cert != "" {
		s.pair = part{paths: []string{f.Cert, f.Key}, parse: parsePair}
	}
	var m Material
	_, badCA := s.ca.load(&m)
	_, badPair := s.pair.load(&m)
	if err := errors.Join(badCA, badPair); err != nil {
		return nil, err
	}
	s.now.Store(&m)
	s.nextLook.Store(time.Now().Add(lookEvery).UnixNano())
	s.expiry(&m, time.Now())
	return s, nil
}

// Current returns the present material, and looks at the files first when it is time
// for that. One caller looks; the others get what there is without waiting, since a
// file system may be slow.
func (s *Source) Current() *Material {
	now := time.Now()
	if now.UnixNano() < s.nextLook.Load() || !s.looking.TryLock() {
		return s.now.Load()
	}
	defer s.looking.Unlock()
	s.look(now)
	s.nextLook.Store(time.Now().Add(lookEvery).UnixNano())
	return s.now.Load()
}

// look reads what has changed. The authorities and the pair are independent: a fault
// in one does not delay the other.
func (s *Source) look(now time.Time) {
	old := s.now.Load()
	m := *old
	for _, p := range []*part{&s.ca, &s.pair} {
		switch changed, err := p.load(&m); {
		case err != nil && p.refused != err.Error():
			p.refused = err.Error()
			s.log.Error("the new certificate files are unusable: the old ones stay in use",
				slog.Any("files", p.paths), slog.String("error", p.refused))
		case err == nil:
			p.refused = ""
			if changed {
				s.log.Info("the certificate files have changed: new connections use them", slog.Any("files", p.paths))
			}
		}
	}
	if m != *old {
		s.now.Store(&m)
	}
	s.expiry(&m, now)
}

// warning is what the log has said about the end of a certificate.
type warning struct {
	of      *tls.Certificate
	at      time.Time
	expired bool
}

// expiry logs the end of our own certificate ahead of time, once a day, and again when
// it has come. A dependency's certificate is its operator's. Ahead is a sixth of the
// certificate's life, and two weeks at most: what renews certificates does so earlier.
func (s *Source) expiry(m *Material, now time.Time) {
	if m.Cert == nil || m.Cert.Leaf == nil {
		return
	}
	end := m.Cert.Leaf.NotAfter
	ahead := min(end.Sub(m.Cert.Leaf.NotBefore)/6, 14*24*time.Hour)
	w := warning{m.Cert, now, now.After(end)}
	said := s.warned
	again := said.of != w.of || said.expired != w.expired || now.Sub(said.at) >= 24*time.Hour
	if now.Add(ahead).Before(end) || !again {
		return
	}
	s.warned = w
	level, message := slog.LevelWarn, "the gateway's certificate expires soon: renew it"
	if w.expired {
		level, message = slog.LevelError, "the gateway's certificate has expired: renew it"
	}
	s.log.Log(context.Background(), level, message, slog.String("file", s.pair.paths[0]), slog.Time("not_after", end))
}
