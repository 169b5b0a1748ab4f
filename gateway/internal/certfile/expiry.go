package certfile

import (
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

// ahead returns how long before its end a certificate is warned of: a sixth of its
// life, and two weeks at most. What renews certificates does so earlier.
func ahead(notBefore, notAfter time.Time) time.Duration {
	return min(notAfter.Sub(notBefore)/6, 14*24*time.Hour)
}

// expiry logs the end of our own certificate, ahead of time and once a day, and again
// when it has come. A dependency's certificate is its operator's.
func (s *Source) expiry(m *Material, now time.Time) {
	if m.Cert == nil || m.Cert.Leaf == nil {
		return
	}
	leaf, said := m.Cert.Leaf, &s.warned
	if said.of != m.Cert {
		*said = warning{of: m.Cert}
	}
	expired := now.After(leaf.NotAfter)
	switch {
	case now.Add(ahead(leaf.NotBefore, leaf.NotAfter)).Before(leaf.NotAfter):
		return
	case expired == said.expired && now.Sub(said.at) < 24*time.Hour && !said.at.IsZero():
		return
	}
	said.at, said.expired = now, expired
	attrs := []any{slog.String("file", s.pair.paths[0]), slog.Time("not_after", leaf.NotAfter)}
	if expired {
		s.log.Error("our certificate has expired", attrs...)
		return
	}
	s.log.Warn("our certificate expires soon", attrs...)
}
