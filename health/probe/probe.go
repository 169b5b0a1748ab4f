// Package probe asks a dependency's health endpoint, for a health gate:
//
//	p, err := probe.Start(probe.Config{URL: "https://payments.internal/health/ready"})
//	defer p.Close()
//	r, err := forbear.New("payments", policy, forbear.WithHealthGate(p.Healthy))
//
// What the dependency reports of itself comes earlier than a rate of failures: a
// service that is overloaded may say so while it still responds. It stands beside
// the gate that counts a Retryer's own attempts, and either of them stops retries.
//
// Experimental: what this package exports may change in any version.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/internal/wait"
)

// Config says what to ask, and how often. All but URL has a default.
type Config struct {
	// URL is the endpoint. A response of 2xx says healthy; anything else, a
	// redirect included, does not.
	URL string
	// Interval is the mean time between two questions; default 5 s. Each wait is
	// drawn from [0, 2 x Interval], the first one too, so that the processes of a
	// fleet do not ask in step.
	Interval time.Duration
	// Timeout bounds one question, headers and all; default 2 s.
	Timeout time.Duration
	// Transport sends the questions; nil is http.DefaultTransport, which verifies
	// certificates.
	Transport http.RoundTripper
	// Logger takes a line at each change, at WARN when the endpoint has become
	// unhealthy; nil is slog.Default.
	Logger *slog.Logger
}

// The defaults of a Config.
const (
	DefaultInterval = 5 * time.Second
	DefaultTimeout  = 2 * time.Second
)

// unhealthyAfter is how many questions in a row must fail before retries stop: one
// that is lost says nothing of the dependency. One success is enough to go on.
const unhealthyAfter = 2

// maxBody bounds what is read of a response, so that its connection can be used
// again; the body itself says nothing here.
const maxBody = 4 << 10

// Prober asks until it is closed. It is safe for concurrent use.
type Prober struct {
	config Config
	client http.Client
	down   atomic.Bool // unhealthyAfter questions in a row have failed
	failed int         // in a row; belongs to the goroutine that asks
	cancel context.CancelFunc
	done   chan struct{}
}

// Start begins to ask. The caller owns the Prober and ends it with
// [Prober.Close]. Until the first response the dependency counts as healthy.
func Start(c Config) (*Prober, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The text may hold a password, so the error does not repeat it.
		return nil, errors.New("the health endpoint is not an http or https address")
	}
	if c.Interval < 0 || c.Timeout < 0 {
		return nil, fmt.Errorf("health endpoint: interval %v or timeout %v is negative", c.Interval, c.Timeout)
	}
	c.Interval, c.Timeout = cmp.Or(c.Interval, DefaultInterval), cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default()).With(slog.String("endpoint", u.Host))
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{config: c, cancel: cancel, done: make(chan struct{})}
	p.client = http.Client{Transport: resend.Once(c.Transport), Timeout: c.Timeout, CheckRedirect: stay}
	go p.run(ctx)
	return p, nil
}

// stay follows no redirect: where it leads may be well while the dependency is not.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Healthy reports whether retries may go on, as far as the latest responses say.
// It does not block; it is what forbear.WithHealthGate takes.
func (p *Prober) Healthy(time.Time) bool { return !p.down.Load() }

// Close stops asking and waits until the last question is over. It may be called
// more than once. A closed Prober keeps saying what it said last.
func (p *Prober) Close() {
	p.cancel()
	<-p.done
}

func (p *Prober) run(ctx context.Context) {
	defer close(p.done)
	for wait.Sleep(ctx, wait.Jitter(2*p.config.Interval)) {
		if err := p.ask(ctx); ctx.Err() == nil {
			p.record(err)
		}
	}
}

// ask asks once; nil means healthy.
func (p *Prober) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.URL, nil)
	if err != nil {
		return errors.New("the request cannot be built")
	}
	req.Close = true // a connection that was kept may have died since, which says nothing of now
	resp, err := p.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			return e.Err // without the URL
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// record draws the conclusion of one question, and logs a change.
func (p *Prober) record(err error) {
	if err == nil {
		p.failed = 0
		if p.down.Swap(false) {
			p.config.Logger.Info("health endpoint is healthy again: retries resume")
		}
		return
	}
	if p.failed = min(p.failed+1, unhealthyAfter); p.failed == unhealthyAfter && !p.down.Swap(true) {
		p.config.Logger.Warn("health endpoint is unhealthy: retries stop", slog.String("error", err.Error()))
	}
}
