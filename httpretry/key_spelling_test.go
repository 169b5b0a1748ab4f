package httpretry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// A caller who fills the map of headers by itself may have spelled the name of its key in
// another way than net/http does: it is the key of the request, and none is made beside it.
func TestKeyIsFoundInEachSpelling(t *testing.T) {
	for _, mode := range []forbear.KeyMode{forbear.KeyReuse, forbear.KeyGenerate} {
		var keys []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, strings.Join(r.Header.Values(httpretry.HeaderKey), "+")) // one request at a time
			if len(keys) == 1 {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				fmt.Fprint(w, `{"type":"urn:x:in-progress"}`)
				return
			}
			if len(keys) == 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		policy := forbear.Policy{Keys: mode, Backoff: forbear.Backoff{Base: time.Millisecond, Cap: time.Millisecond}}
		retryer := forbear.Must(forbear.New("orders", policy, forbear.WithoutLog()))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header["idempotency-key"] = []string{"k"}
		resp, err := (&http.Client{Transport: httpretry.NewTransport(nil, retryer)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		server.Close()
		if got := fmt.Sprint(keys); got != "[k k k]" || resp.StatusCode != http.StatusOK {
			t.Errorf("%v: keys %s, and %d", mode, got, resp.StatusCode)
		}
	}
}
