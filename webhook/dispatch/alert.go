package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// Notifier is a [queue.Notifier] that posts alerts as signed messages, by the same client
// and through the same address guard as everything else. It sends an alert once: the
// [queue.Alerter] keeps it, and sends it again until it is taken.
type Notifier struct{ r *receiver } // which claims nothing

// alertEndpoint names the receiver of alerts in logs and metrics.
const alertEndpoint = "forbear-alerts"

// NewNotifier returns the notifier that posts to e, which needs a URL and a secret.
func NewNotifier(ctx context.Context, d *Dispatcher, e webhook.Endpoint) (*Notifier, error) {
	if len(e.Secrets) == 0 {
		return nil, fmt.Errorf("%w alert endpoint: a secret to sign with is missing", webhook.ErrInvalid)
	}
	e.ID = alertEndpoint
	if err := d.checkEndpoint(ctx, &e); err != nil { // now, not when the first alert is due
		return nil, err
	}
	r := &receiver{d: d, id: e.ID}
	_, err := r.configure(&e)
	return &Notifier{r}, err
}

// Name implements [queue.Notifier].
func (n *Notifier) Name() string { return "webhook" }

// Notify implements [queue.Notifier].
func (n *Notifier) Notify(ctx context.Context, a queue.Alert) error {
	m, err := alertMessage(a)
	if err == nil {
		err = m.Prepare(n.r.d.now().UTC())
	}
	if err != nil {
		return err
	}
	ep := n.r.endpoint()
	sent := n.r.send(ctx, ep, &m, a.Tries+1, ep.attemptTimeout())
	switch {
	case sent.unready != nil:
		return fmt.Errorf("notifier webhook: %s", sent.missing())
	case !sent.delivered():
		return fmt.Errorf("notifier webhook: %s", sent.failure.Type)
	}
	return nil
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
		ID: fmt.Sprintf("alert-%d-%d", a.ID, a.First.UnixMicro()), Endpoints: []string{alertEndpoint},
		Type: "forbear.alert", Source: "urn:forbear", Subject: a.Queue, Body: body,
	}, err
}
