package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
)

// The dead letter of an item says why: the last error, redacted, its types, each
// attempt, and the trace of the run. One that panicked has its value and stack.
func TestDeadLetterSaysWhy(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		n := 0
		ctx := forbear.WithCorrelationID(t.Context(), trace)
		_, err := batch.Run(ctx, retryer(t, calm()), numbers(2), func(_ context.Context, i int) error {
			if i == 1 {
				panic("token=planted")
			}
			n++
			time.Sleep(time.Second)
			return forbear.Retryable(fmt.Errorf("posting %d for ann@example.com: %w", n, errors.ErrUnsupported), forbear.Hint{})
		}, batch.Options[int]{ID: name, DLQ: q, Concurrency: 1})
		if !errors.Is(err, batch.ErrFailed) || len(q.list) != 2 {
			t.Fatalf("%v, %d letters", err, len(q.list))
		}
		for _, l := range q.list {
			if l.TraceID != trace || l.CorrelationID != trace {
				t.Errorf("the trace of %s is %q, %q", l.EventID, l.TraceID, l.CorrelationID)
			}
			if l.EventID == "1" {
				if l.Panic != "token=[redacted]" || l.Stack == "" || l.Error != "panicked: string" {
					t.Errorf("got %+v", l)
				}
				continue
			}
			if l.Error != "posting 4 for [redacted]: unsupported operation" || fmt.Sprint(l.Chain) != "[*fmt.wrapError *errors.errorString]" || len(l.History) != 4 {
				t.Fatalf("got %+v", l)
			}
			for i, a := range l.History {
				if a.Number != i+1 || a.Error != fmt.Sprintf("posting %d for [redacted]: unsupported operation", i+1) || a.Class != "transient" || a.Took != time.Second || a.At.IsZero() {
					t.Errorf("attempt %d: %+v", i+1, a)
				}
			}
		}
	})
}
