// Command before charges a card, with a retry loop that looks harmless. forbear lint
// says what is wrong with it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

const maxRetries = 10

func charge(ctx context.Context, url, body string) error {
	var lastErr error
	for attempt := range maxRetries {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusCreated {
				return nil
			}
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
		lastErr = err
		log.Printf("attempt %d failed: %v, retrying", attempt+1, err)
		time.Sleep(time.Second)
	}
	return lastErr
}

func main() {
	if err := charge(context.Background(), os.Args[1], `{"cents": 4200}`); err != nil {
		log.Fatal(err)
	}
}
