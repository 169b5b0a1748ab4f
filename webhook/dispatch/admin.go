package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
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

// TestResult is what an endpoint answered to a test message.
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

// try sends a message to its one endpoint, once and now, past the queue.
func (d *Dispatcher) try(ctx context.Context, m webhook.Message) (TestResult, error) {
	l := d.lane(m.Endpoints[0])
	if l == nil {
		return TestResult{}, fmt.Errorf("endpoint %q: %w", m.Endpoints[0], webhook.ErrNotFound)
	}
	m.Created = d.now().UTC()
	held := l.hold.lookAgain()
	res := l.send(ctx, &m, 1, l.timeout(&forbear.State{}))
	if res.unready != nil {
		if held {
			l.hold.missing(brief(res.unready), res.look)
		}
		return TestResult{ErrorType: "credential", Response: brief(res.unready)}, nil
	}
	return TestResult{OK: res.failure.Class == forbear.ClassSuccess, Status: res.status, ErrorType: res.failure.Type, Response: res.response}, nil
}

// Deliveries tells how a message fares at each of its endpoints.
func (d *Dispatcher) Deliveries(ctx context.Context, message string) ([]webhook.Info, error) {
	list, err := d.cfg.Store.Deliveries(ctx, message)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %q: %w", message, webhook.ErrNotFound)
	}
	return list, err
}

// Redrive is the target of the webhooks' dead letters.
func (d *Dispatcher) Redrive(ctx context.Context, l deadletter.Letter) error {
	m := webhook.FromLetter(l)
	err := d.admitter(ctx)(&m)
	if err == nil {
		err = d.cfg.Store.Requeue(ctx, l, d.keepsOrder(l.Destination))
	}
	if errors.Is(err, webhook.ErrInvalid) || errors.Is(err, webhook.ErrUnknownEndpoint) || errors.Is(err, webhook.ErrConflict) {
		return fmt.Errorf("%w: %w", deadletter.ErrRefused, err)
	}
	if err != nil {
		return err
	}
	if lane := d.lane(l.Destination); lane != nil {
		lane.dueAt(time.Now())
		d.wake()
	}
	return nil
}
