// Command guide is the program of docs/guides/lattice.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/lattice"
)

// entities is a small upstream: its token endpoint, an entity that becomes
// visible at the second look, and one that is always unavailable.
func entities() http.Handler {
	looks := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+lattice.TokenPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"t1","expires_in":3600,"token_type":"Bearer"}`)
	})
	mux.HandleFunc("GET /entities/new", func(w http.ResponseWriter, _ *http.Request) {
		if looks++; looks == 1 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "visible")
	})
	mux.HandleFunc("GET /entities/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	return mux
}

func main() {
	upstream := httptest.NewServer(entities())
	defer upstream.Close()

	policy := lattice.Policy()
	policy.Backoff.Base = 10 * time.Millisecond // for this program; the default is 1 s
	retryer, err := forbear.New("lattice", policy, forbear.WithoutLog())
	if err != nil {
		log.Fatal(err)
	}
	tokens := credential.New(lattice.ClientCredentials(upstream.URL+lattice.TokenPath, "id", "secret"))
	client := lattice.NewClient(retryer, lattice.Options{Credentials: tokens})

	// An SDK would be given this client: option.WithHTTPClient(client).
	for _, path := range []string{"/entities/new", "/entities/busy"} {
		req, err := http.NewRequest(http.MethodGet, upstream.URL+path, nil)
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(req)
		if stop, ok := errors.AsType[*lattice.StopError](err); ok {
			why, _ := errors.AsType[*forbear.Error](err)
			fmt.Printf("%s: %d after %d attempts: %v (%s)\n", path, stop.StatusCode, stop.Attempts, why.Reason, why.Reason.Rule())
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Printf("%s: %d %s\n", path, resp.StatusCode, body)
	}
}
