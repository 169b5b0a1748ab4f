package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/webhook"
)

// result is what one attempt came to.
type result struct {
	failure  forbear.Failure // of class Success for a good one
	status   int
	response string
	gone     bool // 410: the endpoint is no more
	// unready says that no attempt was made: a credential or a secret was not
	// to be had.
	unready error
	look    time.Time // when the credential was looked for, on the monotonic clock
}

var errAttemptTimeout = errors.New("attempt timed out")

// send makes one attempt, within limit.
func (l *lane) send(ctx context.Context, m *webhook.Message, attempt int, limit time.Duration) result {
	ep := l.endpoint()
	actx, cancel := context.WithTimeoutCause(ctx, limit, errAttemptTimeout)
	defer cancel()
	look := time.Now()
	sign, err := l.signing(actx, &ep)
	if err != nil {
		return result{unready: err, look: look}
	}
	auth, err := l.cred.value(actx)
	if err != nil {
		return result{unready: err, look: look}
	}
	l.ready(look)
	req, err := l.request(actx, &ep, m, sign, attempt)
	if err != nil {
		return result{failure: forbear.Failure{Class: forbear.ClassTerminal, Type: "unsendable", Err: err}}
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	// Not through an http.Client: it would follow redirects, and each hop would
	// be another way in.
	resp, err := l.d.cfg.Transport.RoundTrip(req)
	if err != nil {
		return result{failure: failed(ctx, actx, req, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	return answered(actx, req, resp, auth)
}

// signing returns the endpoint's signer; references are looked up each time,
// so that a rotated secret is used at once.
func (l *lane) signing(ctx context.Context, ep *webhook.Endpoint) (*webhook.Signer, error) {
	l.mu.Lock()
	known := l.signer
	l.mu.Unlock()
	if known != nil {
		return known, nil
	}
	s, fixed := &webhook.Signer{}, true
	for _, secret := range ep.Secrets {
		if !webhook.IsRef(secret) {
			if err := s.Add(secret); err != nil {
				return nil, err
			}
			continue
		}
		fixed = false
		value, err := l.d.cfg.Secrets.lookup(ctx, secret)
		if err != nil {
			return nil, err
		}
		if err := s.Add(value); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSecret, secret, err)
		}
	}
	if fixed {
		l.mu.Lock()
		l.signer = s
		l.mu.Unlock()
	}
	return s, nil
}

// failed classifies an attempt without an answer.
func failed(ctx, actx context.Context, req *http.Request, err error) forbear.Failure {
	err = bare(err)
	if errors.Is(err, webhook.ErrBlocked) {
		return forbear.Failure{Class: forbear.ClassTerminal, Type: "address_blocked", Err: err}
	}
	// The attempt's own timeout is not the caller's deadline.
	f := httpretry.Classify(req.WithContext(context.WithoutCancel(ctx)), nil, err)
	if f.Class != forbear.ClassCertificate && ctx.Err() == nil && context.Cause(actx) == errAttemptTimeout {
		f = forbear.Failure{Class: forbear.ClassTimeout, Type: forbear.TypeTimeout, Err: err}
	}
	if ctx.Err() != nil {
		f.Class, f.Type = forbear.ClassCanceled, forbear.TypeCanceled
	}
	return f
}

// answered classifies an answer: 2xx is a success, anything else is not.
func answered(ctx context.Context, req *http.Request, resp *http.Response, auth string) result {
	res := result{status: resp.StatusCode}
	var body []byte
	if resp.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(io.LimitReader(resp.Body, webhook.MaxResponse))
		if err == nil && len(body) == webhook.MaxResponse {
			_, _ = io.CopyN(io.Discard, resp.Body, maxDrain) // so that the connection can be used again
		}
	}
	if len(body) > 0 {
		res.response = webhook.Redact(body, auth)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if res.failure = httpretry.Classify(req, resp, nil); res.failure.Class != forbear.ClassSuccess {
		res.gone = resp.StatusCode == http.StatusGone
		return res
	}
	if resp.StatusCode/100 != 2 {
		// A redirect is not followed; nothing else below 400 is an acceptance.
		res.failure = forbear.Failure{Class: forbear.ClassTerminal, Type: "http_" + strconv.Itoa(resp.StatusCode), Err: httpretry.StatusError(resp.StatusCode)}
	}
	return res
}

const maxDrain = 64 << 10

// timeout returns how long the attempt under way may take: half the usual time
// for a probe of an endpoint that was down.
func (l *lane) timeout(s *forbear.State) time.Duration {
	p := l.retryer.Policy()
	if limit := p.AttemptTimeout(); !s.Probe() {
		return limit
	} else {
		return limit / 2
	}
}

// enough reports whether a lease leaves time for a whole attempt.
func (l *lane) enough(dl *webhook.Delivery) bool {
	p := l.retryer.Policy()
	return time.Until(dl.LeaseEnd) > p.AttemptTimeout()+leaseMargin
}

// leaseMargin is what a lease must leave beyond the attempt, for writing back.
const leaseMargin = 2 * time.Second
