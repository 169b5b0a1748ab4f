package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// ErrRate refuses messages to an application that has sent more than its rate. The
// error that wraps it is a [*RateError].
var ErrRate = errors.New("more messages than the rate of the application allows")

// RateError says when an application may send again, or an endpoint be tested.
type RateError struct {
	Application string
	Endpoint    string // of a test that is more than the endpoint's own rate; else ""
	RetryAfter  time.Duration
}

// Error implements error.
func (e *RateError) Error() string {
	if e.Endpoint != "" {
		return fmt.Sprintf("endpoint %q: more tests than its rate allows", e.Endpoint)
	}
	return fmt.Sprintf("application %q: %v", e.Application, ErrRate)
}

// Unwrap returns [ErrRate].
func (e *RateError) Unwrap() error { return ErrRate }

// limit takes the messages of a call from their applications' rates, or refuses it.
func (d *Dispatcher) limit(msgs []webhook.Message) error {
	counts := map[string]int{}
	for i := range msgs {
		for id := range d.applications(&msgs[i]) {
			counts[id]++
		}
	}
	for id, n := range counts {
		if err := d.Limit(id, n); err != nil {
			return err
		}
	}
	return nil
}

// Limit takes n messages from an application's rate, or returns a [*RateError]: for what
// sends without being accepted anew. Of an application without endpoints, or without a
// rate, it takes nothing.
func (d *Dispatcher) Limit(application string, n int) error {
	list := d.receivers.tenant(application)
	if application == "" || len(list) == 0 {
		return nil
	}
	rate := list[0].endpoint().conf.Tenant.Rate
	if rate <= 0 {
		return nil
	}
	if wait := d.limits.Take("application "+application, rate, float64(n), time.Now()); wait > 0 {
		return &RateError{Application: application, RetryAfter: wait}
	}
	return nil
}

// limitTest takes a test message from the rates of its endpoint and of the application: it
// is sent past the queue, which would have kept to the former.
func (d *Dispatcher) limitTest(e *webhook.Endpoint) error {
	if e.Rate > 0 {
		if wait := d.limits.Take("endpoint "+e.ID, e.Rate, 1, time.Now()); wait > 0 {
			return &RateError{Application: e.Application, Endpoint: e.ID, RetryAfter: wait}
		}
	}
	return d.Limit(e.Application, 1)
}

// applications are those that a message is for: the one that it names, or those of its
// endpoints.
func (d *Dispatcher) applications(m *webhook.Message) map[string]bool {
	if m.Application != "" {
		return map[string]bool{m.Application: true}
	}
	var of map[string]bool
	for _, e := range m.Endpoints {
		r := d.receiver(e)
		if r == nil {
			continue
		}
		if id := r.endpoint().conf.Application; id != "" {
			if of == nil {
				of = map[string]bool{}
			}
			of[id] = true
		}
	}
	return of
}
