package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A run has a deadline, which its context and those made from it show; until
// then the heartbeat keeps its lease.
func TestRunHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memstore.Idempotency{}
		h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), MaxRun: 5 * time.Minute},
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				if d, ok := ctx.Deadline(); !ok || time.Until(d) != 5*time.Minute || ctx.Err() != nil {
					t.Errorf("deadline in %v, %v", time.Until(d), ctx.Err())
				}
				child, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				begun := time.Now()
				<-child.Done()
				if took := time.Since(begun); took != 5*time.Minute {
					t.Errorf("ended after %v, want 5 min", took)
				}
				<-ctx.Done()
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
					t.Errorf("ended with %v, its child with %v", ctx.Err(), context.Cause(child))
				}
				rec, err := store.Get(context.Background(), idempotency.ID{Scope: "all", Key: idempotency.Digest("k")})
				if err != nil || rec.State != idempotency.Started || !rec.LeaseEnd.After(time.Now()) {
					t.Errorf("the lease was not kept: %+v, %v", rec, err)
				}
			}))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(idempotency.Header, "k")
		h.ServeHTTP(httptest.NewRecorder(), r)
	})
}
