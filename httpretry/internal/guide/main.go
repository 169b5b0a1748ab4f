// Command guide is the program of docs/guides/http.md.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pay URL")
		os.Exit(2)
	}
	if err := pay(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// One Retryer for each dependency, for the life of the process.
var payments = forbear.Must(forbear.New("payments", forbear.Policy{
	Total:   10 * time.Second,
	Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
}))

var client = &http.Client{Transport: httpretry.NewTransport(nil, payments)}

func pay(ctx context.Context, url string, out io.Writer) error {
	body := strings.NewReader(`{"amount": 100, "currency": "USD"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", idempotency.NewKey())
	resp, err := client.Do(req)
	if err != nil {
		return err // no response: a *forbear.Error inside says why it was not tried again
	}
	defer resp.Body.Close()
	if why, ok := httpretry.Outcome(resp); ok {
		return fmt.Errorf("paying: %w", why) // the response itself is in resp
	}
	_, err = fmt.Fprintln(out, "paid:", resp.Status)
	return err
}
