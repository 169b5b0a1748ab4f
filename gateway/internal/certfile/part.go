package certfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
)

// maxSize is the largest file that is read. The authorities of a whole system are a
// quarter of a megabyte.
const maxSize = 4 << 20

// part is files that make sense together. Without paths it never changes.
type part struct {
	paths   []string
	parse   func(paths []string, data [][]byte, into *Material) error
	data    [][]byte // the contents that are in use
	refused string   // why the present files are not, or ""
}

// load reads the files, and puts what they hold into a Material if they have changed.
func (p *part) load(into *Material) (changed bool, err error) {
	data, errs := make([][]byte, len(p.paths)), make([]error, len(p.paths))
	for i, path := range p.paths {
		if i > 0 && path == p.paths[i-1] { // a certificate and its key
			data[i] = data[i-1]
			continue
		}
		data[i], errs[i] = read(path)
	}
	if err := errors.Join(errs...); err != nil || slices.EqualFunc(data, p.data, bytes.Equal) {
		return false, err
	}
	if err := p.parse(p.paths, data, into); err != nil {
		return false, err
	}
	p.data = data
	return true, nil
}

// read reads a regular file of at most maxSize. A pipe would wait for its writer.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxSize:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxSize)
	}
	return os.ReadFile(path)
}

// parsePair parses a certificate and its key. Those of two generations do not match:
// one of the files is yet to be replaced.
func parsePair(paths []string, data [][]byte, into *Material) error {
	cert, err := tls.X509KeyPair(data[0], data[1])
	if err != nil {
		return fmt.Errorf("%s and %s: %w", paths[0], paths[1], err)
	}
	into.Cert = &cert
	return nil
}

// parsePool parses authorities. x509's own AppendCertsFromPEM skips those that it
// cannot read, which would be missed when a dependency is refused.
func parsePool(paths []string, data [][]byte, into *Material) error {
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(data[0]); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("%s: certificate %d: %w", paths[0], n, err)
		}
		pool.AddCert(cert)
	}
	if n == 0 {
		return fmt.Errorf("%s: %w", paths[0], errNoCertificate)
	}
	into.Pool = pool
	return nil
}

var errNoCertificate = errors.New("it holds no PEM certificate")
