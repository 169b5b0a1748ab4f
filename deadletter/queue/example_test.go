package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Keep what could not be done, before its source is acknowledged.
func ExampleStore() {
	ctx := context.Background()
	var store queue.Store = &memstore.Store{} // sqlstore's lasts
	err := store.Put(ctx, deadletter.Letter{
		ID: "dlq_1", Queue: "orders", Destination: "billing", EventID: "order-4711", Reason: "exhausted", ErrorType: "http_503",
		Payload: []byte(`{"card":"4111"}`), Headers: []deadletter.Header{{Name: "Authorization", Value: "Bearer t0k3n"}},
	})
	if err != nil {
		fmt.Println(err) // the source keeps it
		return
	}
	letters, err := store.List(ctx, queue.Filter{Queue: "orders", State: deadletter.Dead})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range letters {
		shown := l.Mask()
		fmt.Println(shown.ID, shown.Reason, len(shown.Payload), shown.Headers[0].Value)
	}
	// Output: dlq_1 exhausted 0 ***
}

// Send dead letters on their way again: one canary first, then the others at a
// rate, until too many fail.
func ExampleRedriver() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := &memstore.Store{}
	for i := range 3 {
		_ = store.Put(ctx, deadletter.Letter{ID: fmt.Sprint("dlq_", i), Queue: "orders", EventID: fmt.Sprint("order-", i), Reason: "exhausted"})
	}
	redriver := queue.NewRedriver(store, "worker-1", map[string]queue.Target{
		"orders": func(ctx context.Context, l deadletter.Letter) error {
			// The work is done here, under the letter's own id and key.
			return store.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
		},
	}, quiet)
	redriver.Poll = 10 * time.Millisecond
	job := queue.Job{Filter: queue.Filter{Queue: "orders"}, By: "ann", Canary: true, Rate: 100}

	plan, err := redriver.Plan(ctx, job)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Total, "letters")

	job, err = redriver.Start(ctx, job, "rdr_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	go func() { redriver.Run(ctx); close(done) }()
	for job.State.Open() {
		time.Sleep(10 * time.Millisecond)
		if job, err = store.Job(ctx, job.ID); err != nil {
			fmt.Println(err)
			return
		}
	}
	cancel()
	<-done
	fmt.Println(job.State, job.Delivered)
	// Output:
	// 3 letters
	// done 3
}
