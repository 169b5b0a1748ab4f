package gateway_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
)

// A replay has the headers that the first response had, whatever they are called, and none
// that it had not. What was for the first exchange alone is left out.
func TestReplayHasTheFirstResponsesHeaders(t *testing.T) {
	first := map[string][]string{
		"Cache-Control": {"no-store"}, "Content-Location": {"/orders/7"}, "Etag": {`"a"`}, "Link": {"</n>; rel=next", "</p>; rel=prev"}, "Location": {"/orders/7"},
		"X-Custom": {"c"}, "Access-Control-Allow-Origin": {"https://shop.test"}, "Deprecation": {"@1"}, "X-Empty": {""},
	}
	exchange := map[string][]string{
		"Set-Cookie": {"s=1"}, "X-Request-Id": {"r1"}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Ratelimit-Remaining": {"3"}, "X-Ratelimit-Remaining": {"3"}, "Age": {"7"},
	}
	for name, contentType := range map[string][]string{"no type": nil, "a type": {"application/json"}} {
		t.Run(name, func(t *testing.T) {
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), first)
				maps.Copy(w.Header(), exchange)
				w.Header()["Content-Type"] = contentType
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, `{"id":7}`)
			}))
			t.Cleanup(up.Close)
			front := httptest.NewServer(keyedGateway(t, up.URL, idempotency.Options{Scope: gateway.PrincipalHeader("X-Principal")}))
			t.Cleanup(front.Close)
			post := func() http.Header {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/pay", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Idempotency-Key", ingressKey)
				r.Header.Set("X-Principal", "ann")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				for _, own := range []string{"Date", "X-Correlation-Id", "Idempotent-Replayed"} {
					resp.Header.Del(own)
				}
				return resp.Header
			}
			want := post()
			for name := range exchange {
				if want[name] == nil {
					t.Errorf("the first response lacks %s", name)
				}
				delete(want, name)
			}
			if got := post(); !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("the replay has %v,\nwant %v", got, want)
			}
		})
	}
}
