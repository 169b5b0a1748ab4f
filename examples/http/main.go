// Command http calls a service that fails now and then. A GET may be sent again as it
// is, a POST only under an idempotency key, and a server that asks for more time than
// there is ends the call at once. Each retry is a line of the log.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

// One Retryer for each dependency, for as long as the process lives: it has the retry
// budget and the breaker, which all calls share. What is not set is the standard: three
// retries, full jitter, 5 s for an attempt.
var payments = forbear.Must(forbear.New("payments", forbear.Policy{
	Total:   10 * time.Second,                              // attempts and waits together
	Backoff: forbear.Backoff{Base: 200 * time.Millisecond}, // then 400 ms, 800 ms; each drawn from 0
}))

// The client has no Timeout: that would cover all attempts together and turn the last
// response into an error. The policy bounds the call, and each attempt.
var client = &http.Client{Transport: httpretry.NewTransport(nil, payments)}

func main() {
	// Ctrl-C ends a call at once, also while it waits for its next attempt.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	url := flaky() // flaky.go; in your program the address of the dependency

	if err := call(ctx, http.MethodGet, url+"/orders/17", "", ""); err != nil {
		log.Print(err)
	}
	// The key is made once for each payment and stored with the order, so that a process
	// that goes on after a crash sends the same one.
	key := idempotency.NewKey()
	if err := call(ctx, http.MethodPost, url+"/payments", key, `{"order": 17, "cents": 4200}`); err != nil {
		log.Print(err)
	}
	if err := call(ctx, http.MethodGet, url+"/report", "", ""); err != nil {
		log.Print(err)
	}
}

// call makes one call, however many attempts that takes, and prints the response.
func call(ctx context.Context, method, url, key, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err // no response at all: the *forbear.Error inside says why it was not tried again
	}
	defer resp.Body.Close()
	// Read to its end, within a bound, a body gives its connection back.
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if why, failed := httpretry.Outcome(resp); failed {
		return why // the response is there as it came, and why says why it was the last
	}
	fmt.Println(method, req.URL.Path, resp.Status, string(text))
	return nil
}
