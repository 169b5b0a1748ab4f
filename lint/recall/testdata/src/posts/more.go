package posts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// case round tripper: FB1030

type retryTransport struct {
	next http.RoundTripper
	max  int
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var (
		resp *http.Response
		err  error
	)
	for i := 0; i < t.max; i++ {
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err = t.next.RoundTrip(req)
		if err == nil && resp.StatusCode < http.StatusInternalServerError {
			return resp, nil
		}
		if i < t.max-1 && resp != nil {
			resp.Body.Close()
		}
		time.Sleep(jittered(i))
	}
	return resp, err
}

// case request literal: FB1030

func fire(ctx context.Context, c *http.Client, u *url.URL, b []byte) (err error) {
	for i := 0; i < 3; i++ {
		req := &http.Request{
			Method: "POST",
			URL:    u,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(bytes.NewReader(b)),
		}
		var resp *http.Response
		resp, err = c.Do(req.WithContext(ctx))
		if err != nil {
			if err := pause(ctx, jittered(i)); err != nil {
				return err
			}
			continue
		}
		return resp.Body.Close()
	}
	return fmt.Errorf("gave up: %w", err)
}

// case json rpc, two levels down: FB1030

type rpcClient struct {
	url  string
	http http.Client
	id   int
}

func (r *rpcClient) roundtrip(ctx context.Context, raw []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (r *rpcClient) Call(ctx context.Context, out any, method string, args ...any) error {
	r.id++
	raw, err := json.Marshal(map[string]any{"id": r.id, "method": method, "params": args})
	if err != nil {
		return err
	}
	answer, err := r.roundtrip(ctx, raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

func (r *rpcClient) SendTransaction(ctx context.Context, tx string) (hash string, err error) {
	for try := 0; try < 10; try++ {
		err = r.Call(ctx, &hash, "eth_sendRawTransaction", tx)
		if err == nil {
			return hash, nil
		}
		if perr := pause(ctx, jittered(try)); perr != nil {
			return "", perr
		}
	}
	return "", err
}

// case patch through a typed client: FB1030

func (r *rpcClient) patch(path string, body string) (int, error) {
	req, _ := http.NewRequest("PATCH", r.url+path, strings.NewReader(body))
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func (r *rpcClient) Label(issue, label string) error {
	attempts := 5
	for {
		code, err := r.patch("/issues/"+issue, label)
		if err == nil && code == http.StatusOK {
			return nil
		}
		attempts--
		if attempts == 0 {
			return fmt.Errorf("label %s: status %d, %v", issue, code, err)
		}
		if err == nil && code < 500 {
			return fmt.Errorf("label %s: status %d", issue, code)
		}
		time.Sleep(jittered(5 - attempts))
	}
}

// case graphql mutation from a worker: FB1030

type mutation struct{ Query string }

func worker(c *http.Client, endpoint string, jobs <-chan mutation, failed chan<- mutation) {
	for job := range jobs {
		b, _ := json.Marshal(job)
		ok := false
		for i := 0; i < 3 && !ok; i++ {
			resp, err := c.Post(endpoint, "application/json", bytes.NewBuffer(b))
			if err != nil {
				time.Sleep(jittered(i))
				continue
			}
			resp.Body.Close()
			ok = true
		}
		if !ok {
			failed <- job
		}
	}
}

// case builder type: FB1030

type builder struct {
	verb string
	url  string
	hdr  http.Header
	body string
}

func (b *builder) Post(u string) *builder { b.verb, b.url = http.MethodPost, u; return b }

func (b *builder) Send(c *http.Client) (*http.Response, error) {
	req, err := http.NewRequest(b.verb, b.url, strings.NewReader(b.body))
	if err != nil {
		return nil, err
	}
	req.Header = b.hdr
	return c.Do(req)
}

func SubmitMetric(c *http.Client, u, line string) error {
	var err error
	for i := 1; i <= 5; i++ {
		var resp *http.Response
		resp, err = (&builder{body: line}).Post(u).Send(c)
		if err == nil {
			return resp.Body.Close()
		}
		time.Sleep(jittered(i))
	}
	return err
}

// case closure variable: FB1030

func Register(ctx context.Context, c *http.Client, u string) error {
	register := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	err := register()
	for n := 0; err != nil && n < 6; n++ {
		if perr := pause(ctx, jittered(n)); perr != nil {
			return perr
		}
		err = register()
	}
	return err
}
