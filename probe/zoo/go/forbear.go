package main

import (
	"log/slog"
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// httpretryCall makes the call with this repository's own transport: its defaults, and a key
// for what is not idempotent.
func httpretryCall(url, method, body string) (int, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	req, err := request(url, method, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", "forbear-httpretry")
	req.Header.Set("Authorization", "Bearer secret")
	retryer, err := forbear.New("server", forbear.Policy{Keys: forbear.KeyGenerate})
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: httpretry.NewTransport(nil, retryer)}
	return read(client.Do(req))
}
