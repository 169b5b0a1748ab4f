package consume_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/storetest/memstore"
)

func newLog() (*slog.Logger, *strings.Builder) {
	var b strings.Builder
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelError})), &b
}

// A handler that does not hear of its end, by a timeout or by a shutdown, keeps nobody
// for longer than the grace; and the event is not given to another before it returns.
func TestDeafHandler(t *testing.T) {
	for _, c := range []struct {
		name string
		stop time.Duration // when the process is asked to end; 0: never
		err  error         // of the handler, after an hour
		runs int
	}{
		{"done after its timeout", 0, nil, 1},
		{"failed after its timeout", 0, errors.New("late"), 2},
		{"done after a shutdown", 10 * time.Second, nil, 1},
		{"failed after a shutdown", 10 * time.Second, errors.New("late"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, text := newLog()
				runs, end := 0, c.err
				var done atomic.Int32
				consumer, err := consume.New(func(context.Context, consume.Event) error {
					if runs++; runs == 1 {
						time.Sleep(time.Hour)
						return end
					}
					return nil
				}, consume.Options{
					Group: "g", Store: &memstore.Idempotency{}, DLQ: &letters{}, Logger: log,
					Retryer: forbear.Must(forbear.New("d", forbear.Policy{Kind: forbear.Event, PerAttempt: 20 * time.Second}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
					Observe: func(_ consume.Event, d consume.Decision) {
						if d.Reason == "done" {
							done.Add(1)
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				e := consume.Event{ID: "1", Source: "/s", Data: []byte("x")}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := 30 * time.Second
				if c.stop > 0 {
					time.AfterFunc(c.stop, cancel)
					want = c.stop + 10*time.Second
				}
				start := time.Now()
				d := consumer.Consume(ctx, e)
				if took := time.Since(start); d.Acknowledge() || d.Reason != "deaf" || took != want {
					t.Errorf("%+v after %v, want %v", d, took, want)
				}
				if !strings.Contains(text.String(), "handler ignores") || !strings.Contains(text.String(), "event=1") {
					t.Errorf("the log says %q", text)
				}
				for time.Since(start) < time.Hour { // in every process, for as long as it runs
					if d := consumer.Consume(t.Context(), e); d.Acknowledge() || d.Reason != "in_progress" {
						t.Fatalf("%+v after %v", d, time.Since(start))
					}
					time.Sleep(29 * time.Second)
				}
				for d = consumer.Consume(t.Context(), e); !d.Acknowledge(); d = consumer.Consume(t.Context(), e) {
					time.Sleep(d.Wait(time.Now()))
				}
				if d.Action != consume.Ack || runs != c.runs {
					t.Errorf("%+v after %d runs, want %d", d, runs, c.runs)
				}
				if n := done.Load(); n != 1 {
					t.Errorf("it was observed to be done %d times", n)
				}
			})
		})
	}
}

// Not more are left behind than memory is for: the others keep their places.
func TestManyDeafHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := newLog()
		consumer, err := consume.New(func(context.Context, consume.Event) error {
			time.Sleep(time.Hour)
			return nil
		}, consume.Options{
			Group: "g", Store: &memstore.Idempotency{}, DLQ: &letters{}, Logger: log,
			Retryer: forbear.Must(forbear.New("d", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
		})
		if err != nil {
			t.Fatal(err)
		}
		reasons := make(chan string, 100)
		for i := range 100 {
			go func() {
				reasons <- consumer.Consume(t.Context(), consume.Event{ID: string(rune('a' + i)), Source: "/s"}).Reason
			}()
		}
		count := map[string]int{}
		for range 100 {
			count[<-reasons]++
		}
		if count["deaf"] != 64 || count["done"] != 36 {
			t.Errorf("%v", count)
		}
	})
}
