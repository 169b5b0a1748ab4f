package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// Disable stops sending to an endpoint. Its messages are kept until R-3's 24
// hours are over, and then become dead letters.
func (d *Dispatcher) Disable(ctx context.Context, id, why string) error {
	if err := d.cfg.Store.SetEndpointState(ctx, id, webhook.Disabled, why, time.Time{}); err != nil {
		return err
	}
	return d.reread(ctx)
}

// TestResult is how an endpoint responded to a test message.
type TestResult struct {
	OK        bool   `json:"ok"`
	Status    int    `json:"status,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
	Response  string `json:"response,omitempty"`
	Enabled   bool   `json:"enabled"`
}

// TestAndEnable sends a test message to an endpoint and enables it when that
// was accepted.
func (d *Dispatcher) TestAndEnable(ctx context.Context, id string) (TestResult, error) {
	out, err := d.try(ctx, webhook.Message{ID: webhook.NewID("msg_test"), Endpoints: []string{id}, Type: "forbear.test", Body: []byte(`{"type":"forbear.test"}`)})
	if err != nil || !out.OK {
		return out, err
	}
	if err := d.cfg.Store.SetEndpointState(ctx, id, webhook.Enabled, "", time.Time{}); err != nil {
		return out, err
	}
	out.Enabled = true
	return out, d.reread(ctx)
}

// try sends a message to its one endpoint, once and now, past the queue. It looks
// for a credential that was missing, and a hold goes on when it still is.
func (d *Dispatcher) try(ctx context.Context, m webhook.Message) (TestResult, error) {
	l := d.lane(m.Endpoints[0])
	if l == nil {
		return TestResult{}, fmt.Errorf("endpoint %q: %w", m.Endpoints[0], webhook.ErrNotFound)
	}
	m.Created = d.now().UTC()
	held := l.ep.hold.lookAgain()
	r := l.ep.send(ctx, &m, 1, l.attemptTimeout())
	if r.unready != nil {
		if held {
			l.ep.hold.missing(r.missing(), r.look)
		}
		return TestResult{ErrorType: "credential", Response: r.missing()}, nil
	}
	return TestResult{OK: r.delivered(), Status: r.status, ErrorType: r.failure.Type, Response: r.body}, nil
}
