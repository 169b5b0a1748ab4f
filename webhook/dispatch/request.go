package dispatch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/forbear-go/forbear/webhook"
)

// target is where the requests of a lane go: what is the same in all of them.
type target struct{ plain *http.Request }

// newTarget reads the endpoint's URL.
func newTarget(text string) (target, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, text, nil)
	return target{req}, err
}

// usualHeaders is how many header lines an attempt has: what fits into a small
// map.
const usualHeaders = 8

// lines are the headers of one attempt, their values in one piece.
type lines struct {
	http.Header
	values []string
}

// put sets one header; name is in canonical form.
func (l *lines) put(name, value string) {
	l.values = append(l.values, value)
	n := len(l.values)
	l.Header[name] = l.values[n-1 : n : n]
}

// request builds the signed request. Its body has no GetBody, so that net/http
// cannot repeat the send by itself.
func (l *lane) request(ctx context.Context, ep *webhook.Endpoint, m *webhook.Message, sign *webhook.Signer, attempt int) (*http.Request, error) {
	h := lines{make(http.Header, usualHeaders), make([]string, 0, usualHeaders)}
	for _, line := range ep.Headers {
		h.Add(line.Name, line.Value)
	}
	for _, line := range m.Headers {
		h.Add(line.Name, line.Value)
	}
	body, err := m.Encode(ep.Format, h.Header)
	if err != nil {
		return nil, err
	}
	now := l.d.now()
	h.put("User-Agent", "forbear-webhook/1")
	h.put("Webhook-Id", m.ID)
	h.put("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if !sign.Empty() {
		h.put("Webhook-Signature", sign.Sign(m.ID, now, body))
	}
	h.put("Idempotency-Key", m.SentKey())
	h.put("X-Retry-Attempt", strconv.Itoa(attempt-1))
	if m.CorrelationID != "" {
		h.put("X-Correlation-Id", m.CorrelationID)
	}
	req := l.target.plain.WithContext(ctx)
	req.Header, req.Body, req.ContentLength = h.Header, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req, nil
}
