// The zoo's clients in Go: zoo CLIENT URL METHOD BODY, and zoo CLIENT TARGET CA for gRPC.
package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// call makes one call; it returns the status of its last response.
type call func(url, method, body string) (status int, err error)

var clients = map[string]call{
	"net-http": netHTTP, "go-retryablehttp": retryablehttp, "resty": restyCall, "failsafe-go": failsafeCall, "heimdall": heimdallCall,
	"cenkalti-backoff": backoffCall, "avast-retry-go": retryCall, "azcore": azureCall, "aws-sdk-go": s3Call, "httpretry": httpretryCall,
}

func main() {
	if len(os.Args) == 4 && grpcClients[os.Args[1]] != nil {
		if err := grpcClients[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 4 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: zoo CLIENT URL METHOD [BODY]; clients:", strings.Join(slices.Sorted(maps.Keys(clients)), " "))
		fmt.Fprintln(os.Stderr, "or zoo CLIENT TARGET CA; clients:", strings.Join(slices.Sorted(maps.Keys(grpcClients)), " "))
		os.Exit(2)
	}
	body := ""
	if len(os.Args) > 4 {
		body = os.Args[4]
	}
	status, err := clients[os.Args[1]](os.Args[2], os.Args[3], body)
	if err == nil && (status < 200 || status > 299) {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// request makes the request, with a body that can be sent again.
func request(url, method, body string) (*http.Request, error) {
	if body == "" {
		return http.NewRequest(method, url, nil)
	}
	return http.NewRequest(method, url, strings.NewReader(body))
}

// read reads a response to its end.
func read(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
