package certfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// maxSize is the largest file that is read. The authorities of a whole system are a
// quarter of a megabyte.
const maxSize = 4 << 20

// part is files that make sense together, and what is known of them. Without paths it
// never changes.
type part struct {
	paths   []string
	read    func(paths []string, data [][]byte, into *Material) error
	stamps  []os.FileInfo // at the last time that they were read
	data    [][]byte      // the contents that are in use
	refused string        // why the present files are not, or ""
}

// load reads the files for the first time.
func (p *part) load(into *Material) error {
	_, err := p.reload(into, time.Now())
	return err
}

// reload reads the files when they may have changed. into stays as it is unless
// changed is true. Files that were refused are read each time: they may be half of a
// change, the other half of which leaves no trace in a clock that is too coarse.
func (p *part) reload(into *Material, now time.Time) (changed bool, err error) {
	if len(p.paths) == 0 {
		return false, nil
	}
	stamps, err := each(p.paths, stat)
	if err != nil {
		return false, err
	}
	if p.refused == "" && slices.EqualFunc(stamps, p.stamps, func(a, b os.FileInfo) bool { return same(a, b, now) }) {
		return false, nil
	}
	data, err := each(p.paths, readFile)
	if err != nil {
		return false, err
	}
	if slices.EqualFunc(data, p.data, bytes.Equal) {
		p.stamps = stamps
		return false, nil
	}
	if err := p.read(p.paths, data, into); err != nil {
		return false, err
	}
	p.stamps, p.data = stamps, data
	return true, nil
}

// each does the same with all paths. The error joins theirs: a file that is missing
// does not hide the next.
func each[T any](paths []string, do func(path string) (T, error)) ([]T, error) {
	done, errs := make([]T, len(paths)), make([]error, len(paths))
	for i, path := range paths {
		if i > 0 && path == paths[i-1] { // a certificate and its key
			done[i] = done[i-1]
			continue
		}
		done[i], errs[i] = do(path)
	}
	return done, errors.Join(errs...)
}

// stat looks at a file that can be read. Reading a pipe would wait for its writer.
func stat(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return info, err
}

// same reports whether a file is what it was. One that was written a moment ago may
// be written once more within the same tick of the file system's clock.
func same(a, b os.FileInfo, now time.Time) bool {
	const tick = 2 * time.Second
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && now.Sub(a.ModTime()) > tick
}

// readFile reads a file of at most maxSize.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSize)
	}
	return data, err
}

// readPair reads a certificate and its key. Those of two generations do not match:
// one of the files is yet to be replaced.
func readPair(paths []string, data [][]byte, into *Material) error {
	cert, err := tls.X509KeyPair(data[0], data[1])
	if err != nil {
		return fmt.Errorf("%s and %s: %w", paths[0], paths[1], err)
	}
	into.Cert = &cert
	return nil
}

// readPool reads authorities. x509's own AppendCertsFromPEM passes over those that it
// cannot read, which would be missed when a dependency is refused.
func readPool(paths []string, data [][]byte, into *Material) error {
	pool, n := x509.NewCertPool(), 0
	for rest := data[0]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
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

var errNoCertificate = errors.New("no certificate in PEM")
