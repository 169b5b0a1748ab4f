package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

// A POST that comes twice is done once, whichever instance it reaches.
func ExampleOpenIdempotency() {
	address, stop := exampleRedis()
	defer stop()
	store, err := redisstore.OpenIdempotency(context.Background(), address, redisstore.IdempotencyOptions{
		Prefix: "orders:key:",
		Logger: slog.New(slog.DiscardHandler), // this server has no append-only file, and would be warned of
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	orders := 0
	h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant()},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			orders++
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "order %d", orders)
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	key := idempotency.NewKey()
	for range 2 {
		req := httptest.NewRequest(http.MethodPost, "/orders", nil)
		req.Header.Set(idempotency.Header, key)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, req)
		fmt.Println(answer.Code, answer.Body, "replayed:", answer.Header().Get(idempotency.HeaderReplayed) == "true")
	}
	// Output:
	// 201 order 1 replayed: false
	// 201 order 1 replayed: true
}

// Records in a service: Production refuses a server that forgets when it is restarted.
func ExampleOpenIdempotency_production() {
	ctx, orders := context.Background(), http.NewServeMux()
	store, err := redisstore.OpenIdempotency(ctx, "redis://127.0.0.1:6379/1", redisstore.IdempotencyOptions{Prefix: "orders:key:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), Production: true}, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("/orders", h)
}
