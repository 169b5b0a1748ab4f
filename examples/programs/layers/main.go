// Command layers is a program of docs/guides/one-layer.md: service A calls B, and B
// calls C. All three run here, so that their requests can be counted.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// newClient returns an HTTP client for one dependency.
func newClient(dependency string) *http.Client {
	retryer := forbear.Must(forbear.New(dependency, forbear.Policy{
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond}, // for this program; the default is 1 s
	}, forbear.WithoutLog()))
	return &http.Client{Transport: httpretry.NewTransport(nil, retryer)}
}

// serve starts a service and counts its requests. Inbound is what each service
// needs: it reads what the caller says of its attempts and its deadline, and says
// in a failed response that the calls below have used their retries.
func serve(handler http.HandlerFunc) (url string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	server := httptest.NewServer(httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler(w, r)
	})))
	return server.URL, requests
}

func main() {
	urlC, toC := serve(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable) // C is down
	})

	clientOfB := newClient("C")
	urlB, toB := serve(func(w http.ResponseWriter, r *http.Request) {
		// The request's own context: it carries what Inbound has read.
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, urlC, nil)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		resp, err := clientOfB.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			w.WriteHeader(http.StatusBadGateway)
		}
	})

	resp, err := newClient("B").Get(urlB) // this is A
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println("A sees", resp.Status)
	if why, ok := httpretry.Outcome(resp); ok {
		fmt.Println("not tried again:", why.Reason)
	}
	fmt.Println(toB.Load(), "request to B,", toC.Load(), "to C")
}
