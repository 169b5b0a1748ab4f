package durable

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// What a message to an application's five endpoints costs to accept, beside one that
// names the five: 100 callers at a time.
func BenchmarkFanOut(b *testing.B) {
	names := map[string]func() string{
		"SQLite":     func() string { return filepath.Join(b.TempDir(), "forbear.db") },
		"PostgreSQL": func() string { return pgtest.Shared(b).Database(b) },
	}
	for kind, name := range names {
		db, err := database.Open(b.Context(), name())
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if _, err := db.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		d, err := dispatch.New(dispatch.Config{Store: db.Webhooks(), Alerts: db.DeadLetters(), Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.PutApplication(b.Context(), webhook.Application{ID: "acme"}); err != nil {
			b.Fatal(err)
		}
		var ids []string
		for i := range 5 {
			ids = append(ids, fmt.Sprint("e", i))
			if _, err := d.PutEndpoint(b.Context(), webhook.Endpoint{ID: ids[i], URL: "https://example.com/", Application: "acme"}); err != nil {
				b.Fatal(err)
			}
		}
		body := bytes.Repeat([]byte("x"), 1024)
		for what, m := range map[string]webhook.Message{"named": {Endpoints: ids, Body: body}, "application": {Application: "acme", Type: "order.shipped", Body: body}} {
			b.Run(kind+"/"+what, func(b *testing.B) {
				var wg sync.WaitGroup
				next := make(chan struct{})
				for range 100 {
					wg.Go(func() {
						for range next {
							if _, err := d.Accept(b.Context(), m); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for b.Loop() {
					next <- struct{}{}
				}
				close(next)
				wg.Wait()
			})
		}
	}
}
