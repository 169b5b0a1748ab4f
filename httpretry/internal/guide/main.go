// Command guide is the program of docs/guides/http.md.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

// One Retryer for each dependency, for the life of the process.
var payments = forbear.Must(forbear.New("payments", forbear.Policy{}))

var client = &http.Client{Transport: httpretry.NewTransport(nil, payments)}

func pay(ctx context.Context, url string) error {
	body := strings.NewReader(`{"amount": 100}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", idempotency.NewKey())
	resp, err := client.Do(req)
	if err != nil {
		return err // no response: a *forbear.Error inside says why it was the last attempt
	}
	defer resp.Body.Close()
	if why, failed := httpretry.Outcome(resp); failed {
		return why // resp is the server's last response, unchanged
	}
	fmt.Println("paid:", resp.Status)
	return nil
}

func main() {
	requests := 0 // a payment service: it fails twice, works once, then closes for 100 s
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests > 3 {
			w.Header().Set("Retry-After", "100")
		}
		if requests != 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer service.Close()
	for range 2 {
		if err := pay(context.Background(), service.URL); err != nil {
			fmt.Println(err)
		}
	}
}
