package forbear

import (
	"cmp"
	"time"
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
