package serve

import (
	"crypto/tls"
	"path/filepath"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// secured returns the gateway's own TLS, or nil where the policy file says nothing of
// it.
func (s *server) secured() (*tls.Config, error) {
	c := s.file.Gateway.TLS
	if c == (policyfile.ListenerTLS{}) {
		return nil, nil
	}
	config, err := gateway.TLS{
		Cert: beside(s.file, c.Cert), Key: beside(s.file, c.Key), ClientCA: beside(s.file, c.ClientCA),
		MinVersion: tlsVersion(c.MinVersion), Logger: s.log,
	}.Config()
	if err != nil {
		return nil, of("gateway.tls", err)
	}
	return config, nil
}

// scheme is what the gateway's addresses begin with.
func (s *server) scheme() string {
	if s.file.Gateway.TLS == (policyfile.ListenerTLS{}) {
		return "http"
	}
	return "https"
}

// beside returns the path of a file that the policy file names: it is beside the
// policy file, unless the path says otherwise.
func beside(file *policyfile.File, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file.Name), path)
}

// tlsVersion returns the version that a policy file names; 0 leaves it to the gateway.
func tlsVersion(name string) uint16 {
	return map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[name]
}
