package queue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
)

// DefaultRetention is how long letters are kept.
const DefaultRetention = 30 * 24 * time.Hour

// Retention exports letters before they expire. Without a folder to export
// to, nothing expires: a letter that no one has seen must not disappear.
type Retention struct {
	Store Store
	Age   time.Duration // default DefaultRetention
	Dir   string
	// Cipher encrypts what is exported; nil leaves it plain. An encrypted
	// store needs an encrypted export, or its letters end in clear.
	Cipher Cipher
	Log    *slog.Logger

	runs atomic.Pointer[pulse.Part]
}

// Health returns the health of Run.
func (r *Retention) Health() Health {
	if p := r.runs.Load(); p != nil {
		return Health(p.State())
	}
	return Health{Name: retentionName, Healthy: true}
}

const retentionName = "retention"

// Letters expire after days, so that looking every ten minutes is early
// enough.
const retentionEvery = 10 * time.Minute

// Run looks for expired letters until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	runs := &pulse.Part{Name: retentionName, Every: retentionEvery}
	r.runs.Store(runs)
	for ctx.Err() == nil {
		err := runs.Do(func() error { _, err := r.Once(ctx); return err })
		if err != nil && ctx.Err() == nil && r.Log != nil {
			r.Log.Error("expired dead letters not exported: they are kept", slog.String("error", err.Error()))
		}
		wait.Sleep(ctx, retentionEvery)
	}
}

// Once exports and removes what has expired, and raises an alert for letters
// that were never decided about. It returns the number of letters removed. Those that
// cannot be read are kept; the error names one of them, when all others are done. A
// crash in between exports a letter twice.
func (r *Retention) Once(ctx context.Context) (removed int, err error) {
	age := r.Age
	if age <= 0 {
		age = DefaultRetention
	}
	f := Filter{Until: time.Now().Add(-age), Limit: MaxList}
	var unreadable error
	for {
		list, err := r.Store.List(ctx, f)
		if err != nil || len(list) == 0 {
			return removed, cmp.Or(err, unreadable)
		}
		if r.Dir == "" {
			return 0, r.Store.Raise(ctx, Alert{Queue: list[0].Queue, Reason: "retention_full", Detail: "dead letters have expired but are kept: start forbear serve with --dlq-export-dir to export them"})
		}
		ids, undecided, err := r.export(list)
		if err != nil {
			return removed, err
		}
		// What is kept is passed over, so that it does not delay the others.
		kept := false
		for _, l := range list {
			if l.State == deadletter.Redriving || l.Unreadable != "" {
				f.After, kept = l.ID, true
			}
			unreadable = cmp.Or(unreadable, l.CheckReadable())
		}
		if undecided > 0 {
			if err := r.Store.Raise(ctx, Alert{Queue: list[0].Queue, Reason: "expired", Detail: fmt.Sprintf("%d dead letters expired without a decision and were exported", undecided)}); err != nil {
				return removed, err
			}
		}
		n, err := r.Store.Remove(ctx, ids)
		removed += n
		if err != nil || n == 0 && !kept { // another process was faster
			return removed, cmp.Or(err, unreadable)
		}
	}
}
