package httpretry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
)

// A server hands the deadline, the attempt and the correlation id of a request
// to the calls that its handlers make.
func ExampleInbound() {
	h := httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := forbear.AttemptFrom(r.Context())
		fmt.Printf("attempt %d of somebody, for %s\n", n, edge.CorrelationID(r.Context()))
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set(httpretry.HeaderAttempt, "1")
	r.Header.Set(httpretry.HeaderCorrelation, "order-4711")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: attempt 2 of somebody, for order-4711
}

// A token is fetched once for all calls, and once more when the server refuses
// it.
func ExampleWithCredentials() {
	token := "Bearer old"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()

	credentials := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		defer func() { token = "Bearer new" }()
		return credential.Token{Value: token}, nil
	}))
	payments := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))
	client := &http.Client{Transport: httpretry.NewTransport(nil, payments, httpretry.WithCredentials(credentials))}
	defer client.CloseIdleConnections()

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
