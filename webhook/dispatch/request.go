package dispatch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/forbear-go/forbear/webhook"
)

// usualHeaders is how many header lines an attempt has: what fits into a small
// map.
const usualHeaders = 8

// lines are the headers of one attempt, their values in one piece: a slice for
// each would be most of what an attempt allocates.
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
func (e *endpoint) request(ctx context.Context, m *webhook.Message, sign *webhook.Signer, attempt int) (*http.Request, error) {
	h := lines{make(http.Header, usualHeaders), make([]string, 0, usualHeaders)}
	for _, line := range e.conf.Headers {
		h.Add(line.Name, line.Value)
	}
	for _, line := range m.Headers {
		h.Add(line.Name, line.Value)
	}
	body, err := m.Encode(e.conf.Format, h.Header)
	if err != nil {
		return nil, err
	}
	now := e.d.now()
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
	req := e.plain.WithContext(ctx)
	req.Header, req.Body, req.ContentLength = h.Header, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req, nil
}
