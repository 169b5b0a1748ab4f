package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// caller is a client that does what the standard asks, but for one thing: the name of a
// switch. It runs in a process of its own, as TestMain has it.
type caller struct {
	wrong        string
	url, method  string
	body         string
	key          string
	tries, waits int
	start        time.Time
	http         *http.Client
}

// The policy of the caller, with short waits.
const (
	callerBase    = 200 * time.Millisecond
	callerAttempt = time.Second
	callerRetries = 3
	callerTotal   = 10 * time.Second
)

// call makes one call, and returns the exit code.
func call(wrong, url, method, body string) int {
	c := &caller{wrong: wrong, url: url, method: method, body: body, key: idempotency.NewKey(), start: time.Now()}
	if wrong == "new key not" {
		c.key = "always"
	}
	pem, _ := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	c.http = &http.Client{Transport: t, CheckRedirect: c.redirect}
	if wrong == "end" && os.Getenv("PROBE_CHILD") == "" {
		return c.leave()
	}
	for {
		c.tries++
		status, wait, again := c.attempt()
		switch {
		case status == http.StatusOK:
			return 0
		case !again || c.tries > c.most() || !c.pause(wait):
			return 1
		}
	}
}

func (c *caller) is(wrong string) bool { return c.wrong == wrong }

func (c *caller) most() int {
	if c.is("count") {
		return 6
	}
	return callerRetries
}

// leave goes on in a child, which outlives it.
func (c *caller) leave() int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROBE_CHILD=1")
	if cmd.Start() != nil {
		return 2
	}
	if cmd.Wait() != nil {
		return 1
	}
	return 0
}

func (c *caller) redirect(req *http.Request, via []*http.Request) error {
	if c.is("redirect") {
		req.Header.Set("Authorization", via[0].Header.Get("Authorization"))
	}
	return nil
}

// attempt sends the request once. wait is what the server asks for; -1 is nothing.
func (c *caller) attempt() (status int, wait time.Duration, again bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.is("attempt") {
		defer time.AfterFunc(callerAttempt, cancel).Stop()
	}
	body := c.body
	if c.is("bytes") && c.tries > 1 {
		body += " "
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, strings.NewReader(body))
	if err != nil {
		return 0, -1, false
	}
	req.GetBody = nil // net/http sends nothing again by itself
	if body == "" {
		req.Body = http.NoBody
	}
	req.Header.Set("Authorization", "Bearer secret")
	keyed := c.method != http.MethodPost || !strings.HasPrefix(c.wrong, "no key ")
	if c.method == http.MethodPost && keyed {
		if c.is("other key") {
			c.key = idempotency.NewKey()
		}
		req.Header.Set(keyHeader, c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, -1, c.againError(err)
	}
	_, err = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil && c.is("half") {
		return http.StatusOK, -1, false
	}
	if err != nil {
		return 0, -1, c.againError(err)
	}
	return resp.StatusCode, c.retryAfter(resp), c.againStatus(resp.StatusCode)
}

func (c *caller) againStatus(code int) bool {
	if c.is("no key 503") && c.method == http.MethodPost {
		return code == 503
	}
	if strings.HasPrefix(c.wrong, "no key ") && c.method == http.MethodPost {
		return false
	}
	retried := slices.Contains([]int{408, 429, 500, 502, 503, 504}, code)
	if c.is(strconv.Itoa(code)) {
		return !retried
	}
	return retried
}

func (c *caller) againError(err error) bool {
	certificate := errors.As(err, new(*tls.CertificateVerificationError))
	timeout := errors.Is(err, context.Canceled)
	post := strings.HasPrefix(c.wrong, "no key ") && c.method == http.MethodPost
	switch {
	case certificate:
		return c.is("certificate")
	case post && timeout:
		return c.is("no key hang")
	case post:
		return c.is("no key reset")
	case c.is("timeout"):
		return !timeout
	case c.is("broken"):
		return timeout
	}
	return true
}

// retryAfter reads what the server asks for.
func (c *caller) retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if c.is("retry-after") || text == "" {
		return -1
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(seconds, 1e6)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && !c.is("date") {
		return time.Until(at)
	}
	if c.is("rubbish") {
		return 0
	}
	return -1
}

// pause waits before the next attempt; false when that does not fit.
func (c *caller) pause(asked time.Duration) bool {
	ceiling := callerBase << c.waits
	c.waits++
	share := rand.Float64()
	switch c.wrong {
	case "equal":
		share = (1 + share) / 2
	case "proportional":
		share = (2 + share) / 3
	case "none":
		share = 1
	case "fixed":
		share, ceiling = 1, callerBase
	case "immediate":
		share = 0
	}
	wait := max(time.Duration(share*float64(ceiling)), asked)
	if (c.is("zero") || c.is("rubbish")) && asked == 0 {
		wait = 0
	}
	if time.Since(c.start)+wait > callerTotal && !c.is("sits") {
		if c.is("until") { // its own end
			time.Sleep(callerTotal/4 - time.Since(c.start))
		}
		return false
	}
	time.Sleep(wait)
	return true
}

// own is the switch for forbear's own client.
const own = "forbear"

// callerMain is the program of the caller.
func callerMain() {
	env := os.Getenv
	if len(os.Args) < 2 && env("PROBE_CHILD") == "" {
		fmt.Fprintln(os.Stderr, "no address")
		os.Exit(2)
	}
	if env("PROBE_WRONG") == own {
		os.Exit(ownCall(env("PROBE_URL"), env("PROBE_METHOD"), env("PROBE_BODY")))
	}
	os.Exit(call(env("PROBE_WRONG"), env("PROBE_URL"), env("PROBE_METHOD"), env("PROBE_BODY")))
}
