// Command guide is the program of docs/guides/consume.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/storetest/memstore"
)

var errBusy = errors.New("ledger is busy")

// ledger is what the handler works on. It is busy once.
type ledger struct{ calls int }

func (l *ledger) book(order string) error {
	if l.calls++; l.calls == 1 {
		return errBusy
	}
	if order == "" {
		return errors.New("an order without a number")
	}
	return nil
}

// printer stands for a queue.Store.
type printer struct{}

func (printer) Put(_ context.Context, l deadletter.Letter) error {
	fmt.Printf("dead letter of %s after %d attempt: %s\n", l.EventID, l.Attempts, l.Reason)
	return nil
}

func main() {
	retryer := forbear.Must(forbear.New("ledger", forbear.Policy{
		Kind:    forbear.Event,
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond},
	}, forbear.WithoutLog(), forbear.WithCallerDeadLetter()))

	books := &ledger{}
	consumer, err := consume.New(func(ctx context.Context, e consume.Event) error {
		err := books.book(string(e.Data))
		if errors.Is(err, errBusy) {
			return forbear.Retryable(err, forbear.Hint{})
		}
		return err // unknown: not retried
	}, consume.Options{
		Group:   "bookkeeping",
		Store:   &memstore.Idempotency{}, // in production: sqlstore
		DLQ:     printer{},
		Retryer: retryer,
		Observe: func(e consume.Event, d consume.Decision) {
			fmt.Printf("%s: %v, %s\n", e.ID, d.Action, d.Reason)
		},
	})
	if err != nil {
		panic(err)
	}

	server := httptest.NewServer(consume.CloudEvents(consumer))
	defer server.Close()
	for _, order := range []string{"17", "17", ""} {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(order))
		if err != nil {
			panic(err)
		}
		req.Header.Set("ce-specversion", "1.0")
		req.Header.Set("ce-id", "order-"+order)
		req.Header.Set("ce-source", "/shop")
		req.Header.Set("ce-type", "order.created")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
}
