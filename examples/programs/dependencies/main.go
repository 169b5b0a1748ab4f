// Command dependencies is a program of docs/guides/dependencies.md: a service that
// calls two others, each with a policy and a budget of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

func main() {
	quick := forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}
	set, err := forbear.NewSet("checkout", forbear.Policy{Backoff: quick})
	if err != nil {
		log.Fatal(err)
	}
	// A page can do without its suggestions: one retry, five seconds in all.
	err = set.Configure("search", forbear.Policy{Total: 5 * time.Second, MaxRetries: 1, Backoff: quick})
	if err != nil {
		log.Fatal(err)
	}
	// The payment service honors idempotency keys, so forbear may make them.
	err = set.Configure("payments", forbear.Policy{Keys: forbear.KeyGenerate, Backoff: quick})
	if err != nil {
		log.Fatal(err)
	}

	// One client for all of them. A host that is not listed is the dependency
	// "default", which has the policy of the set.
	names := map[string]string{
		host(os.Getenv("SEARCH_URL")):   "search",
		host(os.Getenv("PAYMENTS_URL")): "payments",
	}
	client := &http.Client{Transport: httpretry.NewTransport(nil, nil,
		httpretry.WithRetryer(func(req *http.Request) *forbear.Retryer {
			return set.Retryer(names[req.URL.Host])
		}))}

	ctx := context.Background()
	call(ctx, client, http.MethodGet, os.Getenv("SEARCH_URL"), "")
	call(ctx, client, http.MethodPost, os.Getenv("PAYMENTS_URL"), `{"amount": 100}`)

	// What is not HTTP takes its Retryer from the same set.
	err = set.Retryer("mail").Do(ctx, sendReceipt)
	if err != nil {
		log.Fatal(err)
	}
}

// call makes one call and prints how it ended.
func call(ctx context.Context, client *http.Client, method, url, body string) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if why, ok := httpretry.Outcome(resp); ok {
		fmt.Printf("%s: %d, %v after %d attempts\n", why.Dependency, resp.StatusCode, why.Reason, why.Attempts)
		return
	}
	fmt.Println(method, resp.Request.URL.Path, resp.Status)
}

// mailBusy is what the mail server of this program says once.
var mailBusy = true

func sendReceipt(context.Context) error {
	if mailBusy {
		mailBusy = false
		return forbear.Retryable(errors.New("mail server is busy"), forbear.Hint{})
	}
	fmt.Println("receipt sent")
	return nil
}

// host returns the host of an address, with its port.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		log.Fatal(err)
	}
	return u.Host
}
