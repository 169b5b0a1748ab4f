// Package posts holds writes that are retried without an idempotency key, in
// the shapes in which engineers write them.
package posts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func jittered(attempt int) time.Duration {
	return rand.N(min(30*time.Second, 200*time.Millisecond<<attempt))
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

type api struct {
	base    string
	token   string
	hc      *http.Client
	retries int
}

// case split over helpers: FB1030

func (a *api) newRequest(ctx context.Context, method, path string, v any) (*http.Request, error) {
	var body io.Reader
	if v != nil {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	return req, nil
}

func (a *api) exec(req *http.Request, out any) error {
	resp, err := a.hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return fmt.Errorf("server said %s", resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

type order struct{ ID string }

func (a *api) CreateOrder(ctx context.Context, o order) (*order, error) {
	var last error
	for attempt := 0; attempt < 4; attempt++ {
		req, err := a.newRequest(ctx, http.MethodPost, "/orders", o)
		if err != nil {
			return nil, err
		}
		var created order
		if last = a.exec(req, &created); last == nil {
			return &created, nil
		}
		if err := pause(ctx, jittered(attempt)); err != nil {
			return nil, err
		}
	}
	return nil, last
}

// case range over int: FB1030

func Notify(hook string, payload []byte) error {
	var err error
	for i := range 3 {
		var resp *http.Response
		resp, err = http.Post(hook, "application/json", bytes.NewReader(payload))
		if err == nil {
			resp.Body.Close()
			return nil
		}
		time.Sleep(jittered(i))
	}
	return err
}

// case goto: FB1030

func Login(c *http.Client, u string, form url.Values) (*http.Response, error) {
	tries := 0
again:
	resp, err := c.PostForm(u, form)
	if err != nil {
		tries++
		if tries > 3 {
			return nil, err
		}
		time.Sleep(jittered(tries))
		goto again
	}
	return resp, nil
}

// case recursion: FB1030

func (a *api) charge(ctx context.Context, cents int, left int) error {
	body := strings.NewReader(fmt.Sprintf(`{"cents":%d}`, cents))
	req, err := http.NewRequestWithContext(ctx, "POST", a.base+"/charges", body)
	if err != nil {
		return err
	}
	resp, err := a.hc.Do(req)
	if err != nil {
		if left == 0 {
			return err
		}
		time.Sleep(jittered(3 - left))
		return a.charge(ctx, cents, left-1)
	}
	return resp.Body.Close()
}

// case retry helper with a closure: FB1030

func withRetries(n int, f func() error) error {
	var err error
	for i := 0; i < n; i++ {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(jittered(i))
	}
	return err
}

func (a *api) AddMember(ctx context.Context, team, user string) error {
	return withRetries(5, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/teams/"+team+"/members", strings.NewReader(user))
		if err != nil {
			return err
		}
		resp, err := a.hc.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// case generic helper: FB1030

func retryValue[T any](ctx context.Context, n int, f func(context.Context) (T, error)) (T, error) {
	var zero T
	var errs []error
	for i := range n {
		v, err := f(ctx)
		if err == nil {
			return v, nil
		}
		errs = append(errs, err)
		if err := pause(ctx, jittered(i)); err != nil {
			return zero, err
		}
	}
	return zero, errors.Join(errs...)
}

func (a *api) OpenTicket(ctx context.Context, text string) (string, error) {
	return retryValue(ctx, 3, func(ctx context.Context) (string, error) {
		resp, err := a.hc.Post(a.base+"/tickets", "text/plain", strings.NewReader(text))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		id, err := io.ReadAll(resp.Body)
		return string(id), err
	})
}

// case method value: FB1030

func (a *api) publishOnce(msg []byte) error {
	resp, err := a.hc.Post(a.base+"/publish", "application/octet-stream", bytes.NewReader(msg))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return errors.New(resp.Status)
	}
	return nil
}

func (a *api) Publish(msg []byte) (err error) {
	send := a.publishOnce
	for n := 0; n <= a.retries; n++ {
		if err = send(msg); err == nil {
			break
		}
		time.Sleep(jittered(n))
	}
	return err
}

// case method as an argument, loop in the callee: FB1030

func (a *api) call(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		resp, err := a.hc.Do(req)
		if err == nil && resp.StatusCode < 500 {
			return resp, nil
		}
		if attempt >= a.retries {
			return resp, err
		}
		if resp != nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(jittered(attempt)):
		}
	}
}

func (a *api) Rename(ctx context.Context, id, name string) error {
	resp, err := a.call(ctx, http.MethodPatch, "/things/"+id, []byte(name))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
