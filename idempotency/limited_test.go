package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A limited context behaves like one of context.WithTimeout, whether it is
// waited for, asked, or has children.
func TestLimitedContext(t *testing.T) {
	type key struct{}
	for name, wait := range map[string]func(ctx context.Context){
		"waited for": func(ctx context.Context) { <-ctx.Done() },
		"asked":      func(context.Context) { time.Sleep(time.Second) },
		"with a child": func(ctx context.Context) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if !errors.Is(child.Err(), ctx.Err()) {
				t.Errorf("the child ended with %v, not with %v", child.Err(), ctx.Err())
			}
		},
	} {
		for _, early := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent := context.WithValue(context.WithoutCancel(t.Context()), key{}, "v")
				begun, want, after := time.Now(), context.DeadlineExceeded, time.Second
				ctx := limit(parent, time.Second)
				if d, ok := ctx.Deadline(); !ok || time.Until(d) != time.Second || ctx.Err() != nil || ctx.Value(key{}) != "v" {
					t.Errorf("%s: at first: %v, %v, %v", name, d, ctx.Err(), ctx.Value(key{}))
				}
				if early {
					want, after = context.Canceled, time.Millisecond
					time.AfterFunc(after, ctx.end)
				}
				wait(ctx)
				if took := time.Since(begun); !errors.Is(ctx.Err(), want) || took != after && name != "asked" {
					t.Errorf("%s, early %v: %v after %v, want %v after %v", name, early, ctx.Err(), took, want, after)
				}
				select {
				case <-ctx.Done():
				default:
					t.Errorf("%s, early %v: not done", name, early)
				}
				if ctx.Value(key{}) != "v" {
					t.Errorf("%s: the value is gone", name)
				}
				ctx.end()
			})
		}
	}
}
