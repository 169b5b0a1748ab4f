package certfile

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// opened opens the files of a folder, with a log that can be read.
func opened(t *testing.T, dir string) (*Source, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := Open(Files{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
	}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s, &log
}

// leafOf returns the name in the certificate in use, a second after the last look.
func leafOf(s *Source) string {
	time.Sleep(lookEvery)
	return s.Current().Cert.Leaf.Subject.CommonName
}

// TestFilesAreReadAgain: by a rename over the file, in place, and by the swap of a
// link to the folder.
func TestFilesAreReadAgain(t *testing.T) {
	ca := certtest.NewCA(t, "one")
	in := func(dir string) func(string, []byte) {
		return func(name string, data []byte) { certtest.Write(t, filepath.Join(dir, name), data) }
	}
	fill := func(dir, name string) {
		leaf := ca.Issue(name, nil)
		for file, data := range map[string][]byte{"ca.pem": ca.PEM, "tls.crt": leaf.Cert, "tls.key": leaf.Key} {
			in(dir)(file, data)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		a, b, link := filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "data")
		for _, dir := range []string{a, b} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		fill(a, "first.test")
		fill(b, "second.test")
		if err := os.Symlink(a, link); err != nil {
			t.Fatal(err)
		}
		s, _ := opened(t, link)
		first := s.Current()
		if got := leafOf(s); got != "first.test" || s.Current() != first {
			t.Errorf("got %s, another material: %v; want first.test, and the same", got, s.Current() != first)
		}
		swap := filepath.Join(root, "swap")
		if err := os.Symlink(b, swap); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(swap, link); err != nil {
			t.Fatal(err)
		}
		if s.Current() != first {
			t.Error("the files were looked at twice within a second")
		}
		if got := leafOf(s); got != "second.test" {
			t.Errorf("after the swap of a link: %s, want second.test", got)
		}
		fill(b, "third.test")
		if got := leafOf(s); got != "third.test" {
			t.Errorf("after renames: %s, want third.test", got)
		}
		leaf := ca.Issue("forth.test", nil) // of the same length
		for name, data := range map[string][]byte{"tls.crt": leaf.Cert, "tls.key": leaf.Key} {
			if err := os.WriteFile(filepath.Join(b, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := leafOf(s); got != "forth.test" {
			t.Errorf("written in place: %s, want forth.test", got)
		}
	})
}

// TestHalfAPairIsNotTaken: the certificate of one generation and the key of another
// leave the old pair in use, which the log says once; a new CA beside them is taken.
func TestHalfAPairIsNotTaken(t *testing.T) {
	ca, other := certtest.NewCA(t, "one"), certtest.NewCA(t, "two")
	before, after := ca.Issue("before.test", nil), ca.Issue("after.test", nil)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write := func(name string, data []byte) { certtest.Write(t, filepath.Join(dir, name), data) }
		write("ca.pem", ca.PEM)
		write("tls.crt", before.Cert)
		write("tls.key", before.Key)
		s, log := opened(t, dir)

		write("tls.crt", after.Cert)
		write("ca.pem", other.PEM)
		for range 3 {
			if got := leafOf(s); got != "before.test" {
				t.Errorf("half a pair: %s, want before.test", got)
			}
		}
		if !s.Current().Pool.Equal(other.Pool()) {
			t.Error("the new authorities are not in use")
		}
		if n := strings.Count(log.String(), "are unusable"); n != 1 || !strings.Contains(log.String(), "private key does not match") {
			t.Errorf("logged %d times, want once, with the cause: %s", n, log)
		}
		write("tls.key", after.Key)
		if got := leafOf(s); got != "after.test" {
			t.Errorf("the whole pair: %s, want after.test", got)
		}
		if err := os.Remove(filepath.Join(dir, "tls.key")); err != nil {
			t.Fatal(err)
		}
		if got := leafOf(s); got != "after.test" || strings.Count(log.String(), "are unusable") != 2 {
			t.Errorf("a key that is gone: %s, want after.test, and a line in the log: %s", got, log)
		}
		if strings.Contains(log.String(), "PRIVATE KEY") {
			t.Errorf("the log shows a key: %s", log)
		}
	})
}

func TestFaultyFiles(t *testing.T) {
	dir := t.TempDir()
	leaf, stranger := certtest.NewCA(t, "one").Issue("a.test", nil), certtest.NewCA(t, "two").Issue("a.test", nil)
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		certtest.Write(t, path, data)
		return path
	}
	cert, key := file("tls.crt", leaf.Cert), file("tls.key", leaf.Key)
	both := file("both.pem", append(bytes.Clone(leaf.Key), leaf.Cert...))
	for _, tt := range []struct {
		name  string
		files Files
		want  string // "" for none
	}{
		{"none", Files{}, ""},
		{"a pair", Files{Cert: cert, Key: key}, ""},
		{"one file for both", Files{Cert: both, Key: both}, ""},
		{"no key", Files{Cert: cert}, "a certificate and its key belong together"},
		{"no certificate", Files{Key: key}, "a certificate and its key belong together"},
		{"missing", Files{CA: filepath.Join(dir, "none")}, "no such file"},
		{"a folder", Files{CA: dir}, "is not a regular file"},
		{"empty", Files{CA: file("empty", nil)}, "empty: it holds no PEM certificate"},
		{"a key for an authority", Files{CA: key}, "tls.key: it holds no PEM certificate"},
		{"a broken authority", Files{CA: file("broken", append(bytes.Clone(leaf.Cert), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...))}, "broken: certificate 2: "},
		{"another's key", Files{Cert: cert, Key: file("other.key", stranger.Key)}, "private key does not match"},
		{"too large", Files{CA: file("large", make([]byte, maxSize+1))}, "is larger than"},
		{"both at once", Files{CA: dir, Cert: cert, Key: cert}, "tls.crt and "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(tt.files, nil)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestExpiryIsLogged: a sixth of its life ahead, once a day, and when it has come.
func TestExpiryIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, ca := t.TempDir(), certtest.NewCA(t, "one")
		leaf := ca.Issue("a.test", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now(), time.Now().Add(60*24*time.Hour)
		})
		for name, data := range map[string][]byte{"ca.pem": ca.PEM, "tls.crt": leaf.Cert, "tls.key": leaf.Key} {
			certtest.Write(t, filepath.Join(dir, name), data)
		}
		s, log := opened(t, dir)
		day := 0
		until := func(last int) string {
			log.Reset()
			for ; day < last; day++ {
				time.Sleep(24 * time.Hour)
				s.Current()
				s.Current()
			}
			return log.String()
		}
		if got := until(49); got != "" {
			t.Errorf("too early: %s", got)
		}
		if got := until(59); strings.Count(got, "expires soon") != 10 || strings.Count(got, "not_after=") != 10 {
			t.Errorf("the last ten days: %s", got)
		}
		if got := until(62); strings.Count(got, `level=ERROR msg="the gateway's certificate has expired: renew it"`) != 2 {
			t.Errorf("after its end: %s", got)
		}
	})
}
