package status

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	"github.com/go-resty/resty/v2"
	"github.com/hashicorp/go-retryablehttp"
)

// case text of the status: FB1035

func Warm(u string) error {
	var status string
	for i := range 5 {
		resp, err := http.Get(u)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if status = resp.Status; status == "200 OK" {
			return nil
		}
		time.Sleep(jittered(i))
	}
	return errors.New(status)
}

// case bounds of 2xx: FB1035

type session struct{ c *http.Client }

func (s session) get(ctx context.Context, u string) (body []byte, err error) {
	ok := func(code int) bool { return code >= 200 && code < 300 }
	for i := 0; i < 10; i++ {
		req, err := http.NewRequestWithContext(ctx, "GET", u, nil)
		if err != nil {
			return nil, err
		}
		resp, err := s.c.Do(req)
		if err != nil {
			return nil, err
		}
		if ok(resp.StatusCode) {
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		}
		resp.Body.Close()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(jittered(i)):
		}
	}
	return nil, errors.New("too many attempts")
}

// case check of retryablehttp: FB1002 FB1035

func Client() *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			return true, nil
		}
		return resp.StatusCode >= 400, nil
	}
	return c
}

// case condition of resty: FB1035

func Resty() *resty.Client {
	return resty.New().
		SetRetryCount(3).
		AddRetryCondition(func(r *resty.Response, err error) bool {
			return err != nil || r.StatusCode() == http.StatusForbidden || r.StatusCode() >= 500
		})
}

// case status error in a cenkalti operation: FB1035

func Export(ctx context.Context, u string) error {
	return backoff.Retry(func() error {
		resp, err := http.Get(u)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("export: %s", resp.Status)
		}
		return nil
	}, backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
}

// case predicate of avast: FB1035

func Import(u string, out any) error {
	return retry.Do(
		func() error { return fetchJSON(u, out) },
		retry.Attempts(3),
		retry.RetryIf(func(err error) bool {
			he := &httpError{}
			return errors.As(err, &he) && (he.Status == 404 || he.Status == 503)
		}),
	)
}

// case certificate errors: FB1035

func isRetryableTLS(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &unknown) || errors.As(err, &host)
}

func Dial(addr string) (c *tls.Conn, err error) {
	for i := 0; i < 5; i++ {
		c, err = tls.Dial("tcp", addr, nil)
		if err == nil || !isRetryableTLS(err) {
			return c, err
		}
		time.Sleep(jittered(i))
	}
	return nil, err
}

// case certificate error by type assertion: FB1035

func Handshake(addr string) error {
	for i := 0; ; i++ {
		c, err := tls.Dial("tcp", addr, nil)
		if err == nil {
			return c.Close()
		}
		if _, bad := err.(x509.CertificateInvalidError); bad && i < 3 {
			time.Sleep(jittered(i))
			continue
		}
		return err
	}
}

// case code in the text of an error: FB1035

func Describe(u string) error {
	var err error
	for i := 0; i < 3; i++ {
		var v any
		if err = fetchJSON(u, &v); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "404") {
			return err
		}
		time.Sleep(jittered(i))
	}
	return err
}

// case status in a result struct: FB1035

type result struct {
	code int
	body []byte
	err  error
}

func once(u string) (r result) {
	resp, err := http.Get(u)
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	r.code = resp.StatusCode
	r.body, r.err = io.ReadAll(resp.Body)
	return r
}

func Page(u string) ([]byte, error) {
	for i := range 4 {
		r := once(u)
		if r.err == nil && r.code == 200 {
			return r.body, nil
		}
		time.Sleep(jittered(i))
	}
	return nil, errors.New("page not loaded")
}
