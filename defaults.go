package forbear

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/budget"
)

// The figures of the standard, where a policy sets none.
const (
	defaultConnect    = 2 * time.Second
	defaultBodyIdle   = 30 * time.Second
	defaultBase       = time.Second
	defaultCap        = 30 * time.Second
	defaultMinAttempt = 100 * time.Millisecond
)

var webhookSchedule = []time.Duration{
	0, time.Second, 5 * time.Second, 30 * time.Second,
	2 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour,
}

// WithDefaults returns p with every zero field replaced by the default of its
// kind. It does not validate.
func (p Policy) WithDefaults() Policy {
	l := p.Kind.limits()
	switch {
	case p.Disabled:
		p.MaxRetries, p.MaxAttempts = 0, 0
	case p.Kind == Webhook:
		p.MaxAttempts = cmp.Or(p.MaxAttempts, l.count)
	default:
		p.MaxRetries = cmp.Or(p.MaxRetries, l.count)
	}
	p.Total = cmp.Or(p.Total, l.total)
	p.Connect = cmp.Or(p.Connect, defaultConnect)
	p.BodyIdle = cmp.Or(p.BodyIdle, defaultBodyIdle)
	p.MinAttempt = cmp.Or(p.MinAttempt, defaultMinAttempt)
	p.Backoff.Base = cmp.Or(p.Backoff.Base, defaultBase)
	p.Backoff.Cap = cmp.Or(p.Backoff.Cap, max(defaultCap, p.Backoff.Base))
	if p.Kind == Webhook && p.Backoff.Schedule == nil {
		p.Backoff.Schedule = webhookSchedule
	}
	p.Budget = p.Budget.WithDefaults()
	switch {
	case p.Strict && p.Kind.Durable():
		p.Budget.MinRetries = 1 // a queue that may never retry stands still
	case p.Strict:
		p.Budget.MinRetries = 0
	}
	p.Breaker = p.Breaker.WithDefaults(p.AttemptTimeout())
	p.Health = p.Health.WithDefaults()
	return p
}

// Profile returns the named policy, ready to be adjusted:
//
//   - "standard": the zero Policy.
//   - "cautious": a budget of 10 % over 60 s, after the SRE book and the
//     budget article.
//   - "lattice": the vendor's lists of retryable statuses and codes, with full
//     jitter and the standard's counts. It retries 404 and 409, which R-4
//     forbids by default.
func Profile(name string) (Policy, error) {
	switch name {
	case "", "standard":
		return Policy{}, nil
	case "cautious":
		return Policy{Budget: budget.Policy{Ratio: 0.10, Window: time.Minute}}, nil
	case "lattice":
		return Policy{Classify: latticeClasses()}, nil
	}
	return Policy{}, fmt.Errorf("unknown profile %q: want standard, cautious or lattice", name)
}

// latticeClasses holds the rows of the vendor's guide that differ from R-4.
func latticeClasses() map[string]Class {
	return map[string]Class{
		"http_404":       ClassTransient, // not visible yet
		"http_409":       ClassTransient, // concurrent write
		"http_5xx":       ClassTransient,
		"grpc_INTERNAL":  ClassTransient,
		"grpc_UNKNOWN":   ClassTransient,
		"grpc_NOT_FOUND": ClassTransient,
	}
}
