package posts

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	"github.com/go-resty/resty/v2"
	"github.com/hashicorp/go-retryablehttp"
	goretry "github.com/sethvargo/go-retry"
)

// case cenkalti with a closure: FB1030

func Enqueue(ctx context.Context, u string, b []byte) error {
	op := func() error {
		resp, err := http.Post(u, "application/json", bytes.NewReader(b))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	return backoff.Retry(op, backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
}

// case avast with a closure: FB1030

func Invite(ctx context.Context, a *api, mail string) error {
	return retry.Do(
		func() error {
			resp, err := a.hc.Post(a.base+"/invites", "text/plain", strings.NewReader(mail))
			if err != nil {
				return err
			}
			return resp.Body.Close()
		},
		retry.Attempts(4),
		retry.Context(ctx),
	)
}

// case retryablehttp: FB1030

func Report(c *retryablehttp.Client, u string, b []byte) error {
	resp, err := c.Post(u, "application/json", b)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// case resty: FB1030

func Pay(u string, cents int) error {
	client := resty.New().SetRetryCount(3)
	_, err := client.R().SetBody(map[string]int{"cents": cents}).Post(u)
	return err
}

// case sethvargo: FB1030

func Ship(ctx context.Context, a *api, parcel string) error {
	b := goretry.WithMaxRetries(3, goretry.WithFullJitter(goretry.NewExponential(1e8)))
	return goretry.Do(ctx, b, func(ctx context.Context) error {
		req, err := a.newRequest(ctx, http.MethodPost, "/shipments", parcel)
		if err != nil {
			return err
		}
		if err := a.exec(req, nil); err != nil {
			return goretry.RetryableError(err)
		}
		return nil
	})
}
