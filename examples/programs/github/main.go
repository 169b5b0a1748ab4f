// Command github is a program of docs/guides/sdks.md: it labels an issue.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/google/go-github/v89/github"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

func main() {
	retryer := forbear.Must(forbear.New("github", forbear.Policy{
		Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
	}))
	options := []github.ClientOptionsFunc{
		github.WithTransport(httpretry.NewTransport(nil, retryer)),
		github.WithAuthToken(os.Getenv("GITHUB_TOKEN")),
	}
	if url := os.Getenv("GITHUB_URL"); url != "" {
		options = append(options, github.WithURLs(&url, nil))
	}
	client, err := github.NewClient(options...)
	if err != nil {
		log.Fatal(err)
	}

	// A PUT: safe to repeat. The POST that adds one label would be sent once.
	labels, _, err := client.Issues.ReplaceLabelsForIssue(context.Background(), "forbear-go", "forbear", 1, []string{"bug"})
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		// Not waited for: it may be an hour. Until then the client asks no more.
		fmt.Println("no calls left before", limit.Rate.Reset.UTC().Format(time.RFC3339))
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("labels:", len(labels))
}
