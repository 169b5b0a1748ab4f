// Command guide is the program of docs/guides/batch.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
)

type invoice struct {
	Number string
	Cents  int
}

var errBusy = errors.New("mail server is busy")

func main() {
	dir, err := os.MkdirTemp("", "batch")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	retryer := forbear.Must(forbear.New("mail", forbear.Policy{
		Kind:    forbear.Batch,
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond},
	}, forbear.WithoutLog()))
	invoices := []invoice{{"A1", 100}, {"A2", 250}, {"A3", -1}, {"A4", 80}}

	calls := 0
	send := func(ctx context.Context, i invoice) error {
		switch calls++; {
		case calls == 1:
			return forbear.Retryable(errBusy, forbear.Hint{})
		case i.Cents < 0:
			return forbear.Terminal(errors.New("not an invoice"))
		}
		return nil
	}

	for range 2 { // the second run does what the first has left
		journal, err := batch.OpenFile(filepath.Join(dir, "invoices.journal"), "invoices of November")
		if err != nil {
			panic(err)
		}
		report, err := batch.Run(context.Background(), retryer, slices.Values(invoices), send, batch.Options[invoice]{
			Concurrency: 1,
			ID:          func(i invoice) string { return i.Number },
			Journal:     journal,
		})
		fmt.Println(report.Done, "done,", report.Skipped, "skipped,", report.Failed, "failed,", report.Retries, "retries")
		for _, p := range report.Problems {
			fmt.Println(p.ID, p.Reason)
		}
		fmt.Println(errors.Is(err, batch.ErrFailed))
		if err := journal.Close(); err != nil {
			panic(err)
		}
	}
}
