// Package payment charges cards through an external processor, by the retry
// policy in policy.yaml. It is the worked example of a policy for a payment
// service: what the policy promises is held by a test for each line.
package payment

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/policyfile"
)

//go:embed policy.yaml
var policy []byte

// Client charges cards. It is safe for concurrent use.
type Client struct {
	url  string
	http *http.Client
}

// New returns a client of the processor at url, or of the policy's own when url
// is "". next sends the requests; nil means http.DefaultTransport.
func New(url string, next http.RoundTripper, opts ...forbear.Option) (*Client, error) {
	f, err := policyfile.Parse("policy.yaml", policy)
	if err != nil {
		return nil, err
	}
	d, ok := f.Dependency("processor")
	if !ok {
		return nil, fmt.Errorf("%s has no processor", f.Name)
	}
	r, err := forbear.New(d.Name, d.Policy, append(f.Options(), opts...)...)
	if err != nil {
		return nil, err
	}
	if url == "" {
		url = d.URL
	}
	return &Client{url, &http.Client{Transport: httpretry.NewTransport(next, r)}}, nil
}

// Charge charges amount cents. The error of a refused payment is a
// [*Refused]; all retries are over by then.
//
// The body is read to its end, within a bound, so that the connection can be
// used again.
func (c *Client) Charge(ctx context.Context, card string, amount int) error {
	body, err := json.Marshal(map[string]any{"card": card, "amount": amount})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/payments", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("charging: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode >= 300 {
		return &Refused{resp.StatusCode}
	}
	return nil
}

// Refused is the processor's final no: the card was declined, and asking
// again would get the same response.
type Refused struct{ Status int }

// Error returns "the processor responded with 402".
func (e *Refused) Error() string { return fmt.Sprintf("the processor responded with %d", e.Status) }
