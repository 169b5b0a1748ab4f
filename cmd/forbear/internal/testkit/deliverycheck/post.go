package deliverycheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// request is the body of POST /v1/messages. It is written out here instead of
// imported, so that a renamed field of the API is caught.
type request struct {
	ID             string          `json:"id,omitempty"`
	Endpoint       string          `json:"endpoint,omitempty"`
	Endpoints      []string        `json:"endpoints,omitempty"`
	Application    string          `json:"application,omitempty"`
	Type           string          `json:"type,omitempty"`
	Source         string          `json:"source,omitempty"`
	Subject        string          `json:"subject,omitempty"`
	Key            string          `json:"key,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	CorrelationID  string          `json:"correlation_id,omitempty"`
	ContentType    string          `json:"content_type,omitempty"`
	Headers        []Header        `json:"headers,omitempty"`
	NotBefore      time.Time       `json:"not_before,omitzero"`
	Payload        json.RawMessage `json:"payload,omitempty"`
	Base64         []byte          `json:"payload_base64,omitempty"`
}

// maxCalls bounds how often one offer is repeated. At 10 to 50 ms a call that is a
// minute or so: longer than any restart.
const maxCalls = 2000

// post makes the next offer over HTTP. A failure ends the run.
func (p *producer) post(ctx context.Context) error { return p.offer(ctx, p.next()) }

// offer calls any of the processes, and repeats the call until there is
// a response: an offer without an end could not be judged. Calls of one offer go to
// different processes on purpose: a duplicate must be known to all of them.
func (p *producer) offer(ctx context.Context, o *Offer) error {
	body, idHeader := p.request(o)
	o.Begin = p.Clock.Tick()
	//forbear:ignore FB1011,FB1054 an offer without an end could not be judged
	for o.Calls < maxCalls && ctx.Err() == nil {
		o.Calls++
		o.Last = p.Clock.Tick()
		responded, err := o.call(ctx, p.client, p.Addrs[p.r.IntN(len(p.Addrs))], body, idHeader)
		if responded {
			o.End = p.Clock.Tick()
			return nil
		}
		o.Detail = err.Error()
		select {
		case <-ctx.Done():
		case <-time.After(10*time.Millisecond + time.Duration(p.r.Int64N(int64(40*time.Millisecond)))):
		}
	}
	return fmt.Errorf("not acknowledged: %v (%w)", o, context.Cause(ctx))
}

// request writes the offer as a call. What is no part of a message's content
// varies from call to call. The API has several spellings of one message, such as
// payload and payload_base64. All of them must be the same message to it.
func (p *producer) request(o *Offer) (body []byte, idHeader string) {
	c := &o.Content
	r := request{
		ID: o.ID, Endpoints: o.Endpoints, Type: c.Type, Source: c.Source, Subject: c.Subject, Key: c.Key,
		IdempotencyKey: c.IdempotencyKey, ContentType: c.ContentType, Headers: c.Headers, Payload: json.RawMessage(c.Body),
	}
	if c.ContentType == raw || c.ContentType != "" && p.chance(0.5) {
		r.Payload, r.Base64 = nil, []byte(c.Body)
	}
	if len(o.Endpoints) == 1 && p.chance(0.5) {
		r.Endpoint, r.Endpoints = o.Endpoints[0], nil
		if p.chance(0.5) {
			r.Endpoint, r.Application = "", applicationOf(o.Endpoints[0])
		}
	}
	if p.chance(0.1) {
		r.ID, idHeader = "", o.ID
	}
	if p.chance(0.2) {
		r.CorrelationID = p.word("correlation")
	}
	if p.chance(0.02) {
		r.NotBefore = time.Now().Add(-time.Hour)
	}
	body, _ = json.Marshal(r)
	return body, idHeader
}

// call makes one call and takes its response down. It reports false when the
// call got no response, or one with a status that asks for another one. A 5xx or 429
// is repeated, since it promises nothing either way.
func (o *Offer) call(ctx context.Context, client *http.Client, addr string, body []byte, idHeader string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.GetBody = nil // or net/http might repeat the call by itself, unseen
	req.Header.Set("Content-Type", "application/json")
	if idHeader != "" {
		req.Header.Set("Idempotency-Key", idHeader)
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	if resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests {
		return false, fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	o.judge(resp, text)
	return true, nil
}

// judge takes a response down. What is not as the API describes it is
// unexpected, whatever its status. A 409 counts as a refusal only with a problem
// document (RFC 9457): a proxy's bare 409 would not say that nothing was stored.
func (o *Offer) judge(resp *http.Response, text []byte) {
	var said struct {
		ID        string `json:"id"`
		Duplicate bool   `json:"duplicate"`
		Status    int    `json:"status"`
		Type      string `json:"type"`
	}
	err := json.Unmarshal(text, &said)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	o.Status, o.Flag, o.Detail = resp.StatusCode, said.Duplicate, ""
	switch {
	case err == nil && resp.StatusCode == http.StatusAccepted && said.ID == o.ID && !said.Duplicate:
		o.Result = Accepted
	case err == nil && resp.StatusCode == http.StatusOK && said.ID == o.ID && said.Duplicate:
		o.Result = Duplicate
	case err == nil && resp.StatusCode == http.StatusConflict && media == "application/problem+json" && said.Status == http.StatusConflict && said.Type != "":
		o.Result = Refused
	default:
		o.Result, o.Detail = Unexpected, fmt.Sprintf("%s %.300s", media, text)
	}
}
