package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
)

func ExampleNew() {
	// A dependency that answers only at the second attempt.
	payments := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Retry-Attempt") == "0" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "paid at %s, attempt %s", r.URL.Path, r.Header.Get("X-Retry-Attempt"))
	}))
	defer payments.Close()

	target, err := url.Parse(payments.URL + "/v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := forbear.Policy{Backoff: forbear.Backoff{Base: 10 * time.Millisecond}}
	retryer, err := forbear.New("payments", policy, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := gateway.New(gateway.Config{Routes: []gateway.Route{
		{Prefix: "/payments", Target: target, Retryer: retryer},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(g)
	defer srv.Close()

	resp, err := http.Get(srv.URL + "/payments/order/1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	// Output: 200 paid at /v1/order/1, attempt 1
}
