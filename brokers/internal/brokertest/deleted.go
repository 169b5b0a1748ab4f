package brokertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/consume"
)

// An adapter whose source is deleted under load ends with an error: one that waits
// for ever for what is gone looks like one that has nothing to do.
func deleted(t *testing.T, b Broker) {
	k := newKit(t, b, func(context.Context, consume.Event, int) error {
		time.Sleep(5 * time.Millisecond)
		return nil
	})
	c, err := consume.New(k.call, k.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, c) }()
	for i := range 200 {
		b.Publish(t, fmt.Sprint("e", i), fmt.Sprint(i%3), "body")
	}
	k.until("some are done", func() bool { return k.done() >= 20 })
	b.Delete(t)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended without an error")
		}
		t.Log(err)
	case <-time.After(time.Minute):
		cancel()
		t.Errorf("it goes on without its source; then it ended with %v", <-ended)
	}
}
