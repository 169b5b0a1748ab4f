package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/webhook"
)

// Notifier is a [queue.Notifier] that delivers alerts as messages: signed,
// durably, through the same address guard as everything else. An alert counts
// as taken when its message is on disk. Alerts about that very endpoint are
// left to the other notifiers, or each would bring the next.
type Notifier struct{ d *Dispatcher }

// NewNotifier makes the endpoint of alerts, or changes it, and returns its
// notifier. e needs a URL and a secret; its ID is [webhook.AlertEndpoint].
func NewNotifier(ctx context.Context, d *Dispatcher, e webhook.Endpoint) (*Notifier, error) {
	if len(e.Secrets) == 0 {
		return nil, fmt.Errorf("%w alert endpoint: it needs a secret to sign with", webhook.ErrInvalid)
	}
	e.ID = webhook.AlertEndpoint
	e.Policy.Kind = forbear.Webhook
	if e.Policy.MaxAttempts == 0 {
		_, _, e.Policy.MaxAttempts = forbear.Webhook.Range()
	}
	if r := d.receiver(webhook.AlertEndpoint); r == nil || !r.configured(e) {
		if _, err := d.PutEndpoint(ctx, e); err != nil {
			return nil, err
		}
	}
	_, err := d.receiver(webhook.AlertEndpoint).endpoint().signing(ctx) // now, not when the first alert is due
	return &Notifier{d}, err
}

// configured reports whether the endpoint has configuration c, the store's fields
// apart: putting the same one at each start would count its version up.
func (r *receiver) configured(c webhook.Endpoint) bool {
	is := r.config()
	c.State, c.Reason, c.Since, c.Version, c.FailingSince, c.Held = is.State, is.Reason, is.Since, is.Version, is.FailingSince, is.Held
	a, err := json.Marshal(is)
	b, err2 := json.Marshal(c)
	return err == nil && err2 == nil && string(a) == string(b)
}

// Name implements [queue.Notifier].
func (n *Notifier) Name() string { return "webhook" }

// Notify implements [queue.Notifier]. A test alert is sent at once and past
// the queue, so that the operator who asked for it learns how it was taken.
func (n *Notifier) Notify(ctx context.Context, a queue.Alert) error {
	if a.Queue == webhook.AlertQueue {
		return nil
	}
	m, err := alertMessage(a)
	if err != nil {
		return err
	}
	if a.Queue != queue.TestQueue {
		_, err = n.d.Accept(ctx, m)
		return err
	}
	res, err := n.d.try(ctx, m)
	if err == nil && !res.OK {
		err = fmt.Errorf("notifier webhook: %s", res.ErrorType)
	}
	return err
}

// alertMessage returns the message that an alert is delivered as: the alert in
// the envelope of Standard Webhooks.
func alertMessage(a queue.Alert) (webhook.Message, error) {
	plain, err := queue.FormatPlain.Encode(a)
	if err != nil {
		return webhook.Message{}, err
	}
	body, err := json.Marshal(map[string]any{"type": "forbear.alert", "timestamp": a.Last.UTC().Format(time.RFC3339), "data": json.RawMessage(plain)})
	return webhook.Message{
		// An alert that is raised again while it is open is the same message.
		ID: fmt.Sprintf("alert-%d-%d", a.ID, a.First.UnixMicro()), Endpoints: []string{webhook.AlertEndpoint},
		Type: "forbear.alert", Source: "urn:forbear", Subject: a.Queue, Body: body,
	}, err
}

// Health implements [queue.Reporter]: what is accepted may still fail, and is not
// sent before it is claimed.
func (n *Notifier) Health() error {
	if p := pulse.First(&n.d.parts[partDue], &n.d.parts[partClaims]); !p.Healthy {
		return fmt.Errorf("deliveries are not claimed: %s is %s", p.Name, p.When())
	}
	r := n.d.receiver(webhook.AlertEndpoint)
	if r == nil {
		return errors.New("the alert endpoint was deleted: start forbear serve with --alert-webhook to add it again")
	}
	// Disabled comes first: a disabled endpoint fails no more, and looks for no
	// credential.
	switch e, why := r.config(), r.lacks(); {
	case e.State != webhook.Enabled:
		return fmt.Errorf("the alert endpoint is disabled: %s", e.Reason)
	case why != "":
		return fmt.Errorf("the alert endpoint is held: %s", why)
	case !e.FailingSince.IsZero():
		return fmt.Errorf("deliveries have been failing since %s", e.FailingSince.UTC().Format(time.RFC3339))
	}
	return nil
}
