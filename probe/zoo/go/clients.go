package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-resty/resty/v2"
	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	retryable "github.com/hashicorp/go-retryablehttp"
)

func netHTTP(url, method, body string) (int, error) {
	req, err := request(url, method, body)
	if err != nil {
		return 0, err
	}
	return read(http.DefaultClient.Do(req))
}

func retryablehttp(url, method, body string) (int, error) {
	client := retryable.NewClient()
	client.RetryMax = 3 // as its README has it; the default is 4
	client.Logger = nil
	var raw any
	if body != "" {
		raw = []byte(body)
	}
	req, err := retryable.NewRequest(method, url, raw)
	if err != nil {
		return 0, err
	}
	return read(client.Do(req))
}

// restyCall has the set-up of resty's README, with its condition for statuses.
func restyCall(url, method, body string) (int, error) {
	client := resty.New().SetRetryCount(3).SetRetryWaitTime(5 * time.Second).SetRetryMaxWaitTime(20 * time.Second)
	client.AddRetryCondition(func(r *resty.Response, _ error) bool {
		return r.StatusCode() == http.StatusTooManyRequests || r.StatusCode() >= 500
	})
	req := client.R()
	if body != "" {
		req.SetBody(body)
	}
	resp, err := req.Execute(method, url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode(), nil
}

// failsafeCall has the policy for HTTP with the backoff of its documentation.
func failsafeCall(url, method, body string) (int, error) {
	policy := failsafehttp.NewRetryPolicyBuilder().WithBackoff(time.Second, 30*time.Second).WithMaxRetries(3).Build()
	req, err := request(url, method, body)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: failsafehttp.NewRoundTripper(nil, policy)}
	return read(client.Do(req))
}

// heimdallCall has the constant backoff of heimdall's README.
func heimdallCall(url, method, body string) (int, error) {
	retrier := heimdall.NewRetrier(heimdall.NewConstantBackoff(2*time.Millisecond, 5*time.Millisecond))
	client := httpclient.NewClient(httpclient.WithHTTPTimeout(1000*time.Millisecond), httpclient.WithRetrier(retrier), httpclient.WithRetryCount(4))
	req, err := request(url, method, body)
	if err != nil {
		return 0, err
	}
	return read(client.Do(req))
}

// backoffCall has the operation of backoff's example for HTTP; other statuses of 5xx are
// sent again, too.
func backoffCall(url, method, body string) (int, error) {
	return backoff.Retry(context.Background(), func() (int, error) {
		req, err := request(url, method, body)
		if err != nil {
			return 0, backoff.Permanent(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		status, err := read(resp, nil)
		switch {
		case err != nil:
			return 0, err
		case status == http.StatusTooManyRequests:
			if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
				return 0, backoff.RetryAfter(seconds)
			}
			return 0, fmt.Errorf("status %d", status)
		case status >= 500:
			return 0, fmt.Errorf("status %d", status)
		case status >= 400:
			return 0, backoff.Permanent(fmt.Errorf("status %d", status))
		}
		return status, nil
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()))
}

// retryCall has the defaults; every status that is not 2xx is an error, as is usual.
func retryCall(url, method, body string) (int, error) {
	return retry.DoWithData(func() (int, error) {
		req, err := request(url, method, body)
		if err != nil {
			return 0, err
		}
		status, err := read(http.DefaultClient.Do(req))
		if err == nil && (status < 200 || status > 299) {
			err = fmt.Errorf("status %d", status)
		}
		return status, err
	})
}
