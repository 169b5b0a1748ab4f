// Command guide is the program of docs/guides/batch.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
)

type invoice struct {
	Number string
	Cents  int
}

func main() {
	retryer := forbear.Must(forbear.New("mail", forbear.Policy{
		Kind:    forbear.Batch,
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond},
	}, forbear.WithoutLog()))
	invoices := []invoice{{"A1", 100}, {"A2", 250}, {"A3", -1}, {"A4", 80}}

	var calls atomic.Int64 // items are sent at the same time
	send := func(ctx context.Context, i invoice) error {
		switch {
		case calls.Add(1) == 1:
			return forbear.Retryable(errors.New("mail server is busy"), forbear.Hint{})
		case i.Cents < 0:
			return forbear.Terminal(errors.New("not an invoice"))
		}
		return nil
	}

	journal, err := batch.OpenFile("invoices.journal", "invoices of November")
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()
	report, err := batch.Run(context.Background(), retryer, slices.Values(invoices), send, batch.Options[invoice]{
		ID:      func(i invoice) string { return i.Number },
		Journal: journal,
	})
	fmt.Println(report.Done, "done,", report.Skipped, "skipped,", report.Failed, "failed,", report.Retries, "retries")
	for _, p := range report.Problems {
		fmt.Println(p.ID, p.Reason)
	}
	if errors.Is(err, batch.ErrFailed) {
		fmt.Println("some items failed")
	}
}
