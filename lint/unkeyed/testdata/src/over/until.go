package over

import (
	"context"
	"net/http"
	"time"

	"retrying"
)

// SendUntil repeats any request that it is given.
func SendUntil(ctx context.Context, req *http.Request) (resp *http.Response, err error) {
	err = retrying.Until(ctx, retrying.Plan{Base: time.Second, Done: func(n int) (bool, error) { // want `FB1030: retries every request, whatever its method`
		var sent error
		resp, sent = http.DefaultClient.Do(req)
		if sent != nil && n < 4 {
			return false, nil
		}
		return true, sent
	}})
	return resp, err
}

// SendOnce ends with the first failure.
func SendOnce(ctx context.Context, req *http.Request) (resp *http.Response, err error) {
	err = retrying.Until(ctx, retrying.Plan{Base: time.Second, Done: func(n int) (bool, error) {
		var sent error
		resp, sent = http.DefaultClient.Do(req)
		return true, sent
	}})
	return resp, err
}

// readUntil is never given a write.
func readUntil(ctx context.Context, req *http.Request) error {
	return retrying.Until(ctx, retrying.Plan{Base: time.Second, Done: func(n int) (bool, error) {
		_, err := http.DefaultClient.Do(req)
		return err == nil, nil
	}})
}

func reads(ctx context.Context) error {
	req, err := http.NewRequest("GET", "http://example.com", nil)
	if err != nil {
		return err
	}
	return readUntil(ctx, req)
}
