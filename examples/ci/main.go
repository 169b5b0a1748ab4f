// Command ci charges a card by the retry policy in policy.yaml, so that what CI has
// checked is what runs. The folder before has the same program with the retries that
// forbear lint refuses, and a policy that forbear check does.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
)

//go:embed policy.yaml
var policy []byte

// newClient returns an HTTP client for one dependency of the file, and its address.
func newClient(dependency string) (*http.Client, string, error) {
	file, err := policyfile.Parse("policy.yaml", policy)
	if err != nil {
		return nil, "", err
	}
	d, ok := file.Dependency(dependency)
	if !ok {
		return nil, "", fmt.Errorf("%s has no %s", file.Name, dependency)
	}
	retryer, err := forbear.New(d.Name, d.Policy, file.Options()...)
	if err != nil {
		return nil, "", err
	}
	return &http.Client{Transport: httpretry.NewTransport(nil, retryer)}, d.URL, nil
}

// charge makes one charge for a key, which is stored with the order.
func charge(ctx context.Context, client *http.Client, url, key, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // the connection is used again
	if why, failed := httpretry.Outcome(resp); failed {
		return why
	}
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("refused: %s", resp.Status)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, url, err := newClient("payments")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("by policy.yaml:", url)
	url = flaky() // flaky.go: what plays it here
	for order := range 6 {
		if err := charge(ctx, client, url, idempotency.NewKey(), `{"cents": 4200}`); err != nil {
			log.Fatal(err)
		}
		fmt.Println("order", order+1, "is paid")
	}
}
