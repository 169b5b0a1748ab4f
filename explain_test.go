package forbear_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
)

// TestExplain: the words for causes that share a label. Those of real sockets are
// tested where the connections are made.
func TestExplain(t *testing.T) {
	now := time.Now()
	expired := x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotAfter: now.Add(-time.Hour)}}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"wrapped", fmt.Errorf("call: %w", x509.UnknownAuthorityError{}), "the server's certificate is signed by an unknown authority"},
		{"a pointer", &x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, "the server's certificate is for another name"},
		{"joined", errors.Join(errors.New("reset"), expired), "the server's certificate has expired (" + now.Add(-time.Hour).UTC().Format(time.DateOnly) + ")"},
		{"no certificate known", x509.CertificateInvalidError{Reason: x509.Expired}, "the server's certificate is expired or not yet valid"},
		{"HTTP/2 wanted", fmt.Errorf("x: %w", errors.New(`malformed HTTP response "\x00\x00\x06\x04\x00"`)), "the server wants HTTP/2"},
		{"TLS wanted", errors.New(`malformed HTTP response "\x15\x03\x01\x00\x02\x02F"`), "the server wants TLS"},
		{"not HTTP", errors.New(`malformed HTTP response "SSH-2.0"`), "the server's response is not HTTP"},
		{"no quotation", errors.New("malformed HTTP response \\x15"), ""},
		{"a reset", errors.New("reset"), ""},
	} {
		f, _ := edge.ClassifyNet(tt.err)
		f.Err = tt.err
		if got := f.Explain(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := (forbear.Failure{Class: forbear.ClassTransient, Type: "http_503", Err: x509.UnknownAuthorityError{}}).Explain(); got != "" {
		t.Errorf("another failure: %q", got)
	}
}

// TestLogNamesTheCause: the operator reads which of the causes it was.
func TestLogNamesTheCause(t *testing.T) {
	for want, err := range map[string]error{
		`level=ERROR msg="retries stopped"`: x509.UnknownAuthorityError{},
		`level=DEBUG msg="retries stopped"`: errors.New(`malformed HTTP response "\x00\x00\x06\x04\x00"`),
	} {
		var log bytes.Buffer
		to := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o := forbear.LogObserver(to, nil)
		r, fault := forbear.New("up", forbear.Policy{Idempotent: true}, forbear.WithClassifier(edge.ClassifyNet), forbear.WithoutLog(), forbear.WithObserver(o))
		if fault != nil {
			t.Fatal(fault)
		}
		attempts := 0
		_ = r.Do(t.Context(), func(context.Context) error { attempts++; return err })
		if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), `cause="the server`) || attempts != 1 {
			t.Errorf("%d attempts, log %s", attempts, log.String())
		}
	}
}
