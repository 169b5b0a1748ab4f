package faulttable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/forbear-go/forbear/internal/resend"
)

// grade orders outcomes by how well the caller is served.
type grade int

const (
	harmful  grade = iota // done twice, wrong bytes without an error, or a panic
	hanging               // still under way when the caller gave up
	failing               // an error
	partial               // a response whose body fails
	refusing              // a response that is a failure
	flawed                // good, but for something that the case looks at
	good
)

// outcome is what came of one run: what the caller got, and what it took.
type outcome struct {
	grade       grade
	result      string
	sends       int
	bytes       int
	connections int
}

func (c *caller) outcome(r response) outcome {
	sends, bytes, twice, wrong := c.site.seen()
	o := outcome{sends: sends, bytes: bytes, connections: int(c.dials.Load())}
	o.grade, o.result = c.judge(r)
	if r.note != "" {
		o.result += ", " + r.note
	}
	switch {
	case wrong:
		o.grade, o.result = harmful, o.result+", **wrong bytes received**"
	case twice:
		o.grade, o.result = harmful, o.result+", **done twice**"
	}
	return o
}

// judge grades what the caller got by itself.
func (c *caller) judge(r response) (grade, string) {
	want := c.want
	if want == "" {
		want = fine
	}
	if r.status >= 400 {
		want = http.StatusText(r.status)
	}
	if c.method == http.MethodHead || r.status == http.StatusSwitchingProtocols {
		want = r.body
	}
	status := fmt.Sprint(r.status)
	switch {
	case r.trouble != nil:
		return harmful, "panic"
	case r.hung:
		return hanging, "no end"
	case r.err != nil:
		return failing, kind(r.err)
	case r.read != nil:
		return partial, status + ", then " + kind(r.read)
	case r.body != want:
		return harmful, status + ", **wrong body**"
	case r.status >= 400:
		return refusing, status
	case r.flawed:
		return flawed, status
	}
	return good, status
}

// errCaller is the failure of a caller's own body.
var errCaller = errors.New("the caller's own body fails")

// kind puts an error into a few words. Which of several errors a broken
// connection shows depends on timing; they are one kind.
func kind(err error) string {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		nerr net.Error
	)
	switch {
	case errors.As(err, &cert):
		return "certificate refused"
	case errors.Is(err, errCaller):
		return "the caller's error"
	case errors.As(err, &dns):
		return "name not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ENOENT):
		return "no such socket"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &nerr) && nerr.Timeout():
		return "timeout"
	case isAny(err, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed):
		return "connection lost"
	}
	if errors.Is(err, resend.Err) {
		return "re-send stopped"
	}
	// net/http has no types for the others.
	for _, words := range []string{
		"request canceled", "malformed", "response headers exceeded", "server closed idle connection",
		"GOAWAY", "REFUSED_STREAM", "INTERNAL_ERROR", "CANCEL", "Bad Gateway", "Service Unavailable",
		"Proxy Authentication Required", "after Request.Body was written",
	} {
		if strings.Contains(err.Error(), words) {
			return strings.ToLower(strings.ReplaceAll(words, "_", " "))
		}
	}
	return "error"
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// verdict compares what forbear did with what net/http did alone.
type verdict string

const (
	better    verdict = "better"
	same      verdict = "same"
	worse     verdict = "worse"
	forbidden verdict = "forbidden" // the standard forbids what net/http did
)

// compare gives the verdict on a case.
func (f *fault) compare(plain, forbear outcome) verdict {
	p, b := plain.grade, forbear.grade
	if f.leaves && min(p, b) > hanging {
		b = p
	}
	switch {
	case b == harmful:
		return worse // no matter what net/http does
	case b > p:
		return better
	case b < p && f.forbidden && b > hanging:
		return forbidden
	case b < p:
		return worse
	case forbear.sends > plain.sends && !f.retried:
		return worse
	case forbear.sends < plain.sends:
		return better
	}
	return same
}
