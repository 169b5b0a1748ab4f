package certfile

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"
)

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
	level, message := slog.LevelWarn, "our certificate expires soon"
	if w.expired {
		level, message = slog.LevelError, "our certificate has expired"
	}
	s.log.Log(context.Background(), level, message, slog.String("file", s.pair.paths[0]), slog.Time("not_after", end))
}
