package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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
			return 0, r.Store.Raise(ctx, Alert{Queue: list[0].Queue, Reason: "retention_full", Detail: "dead letters have expired and there is no folder to export them to: they are kept"})
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
			if err := r.Store.Raise(ctx, Alert{Queue: list[0].Queue, Reason: "expired", Detail: fmt.Sprintf("%d dead letters expired undecided and were exported", undecided)}); err != nil {
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

// export appends letters to a file of the day that only its owner may read, and syncs
// it and its name. Each is written in one piece, since another process may append to the
// same file, and begins a line, also behind one that a crash or a full disk has cut short.
func (r *Retention) export(list []deadletter.Letter) (ids []string, undecided int, err error) {
	name := filepath.Join(r.Dir, "dead-letters-"+time.Now().UTC().Format("2006-01-02")+".jsonl")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var line bytes.Buffer
	if cut, err := endsWithin(f); err != nil {
		return nil, 0, err
	} else if cut {
		line.WriteByte('\n')
	}
	for _, l := range list {
		if l.State == deadletter.Redriving || l.Unreadable != "" {
			continue
		}
		if l.State == deadletter.Dead {
			undecided++
		}
		if err := r.write(&line, l); err != nil {
			return nil, 0, err
		}
		if _, err := f.Write(line.Bytes()); err != nil {
			return nil, 0, err
		}
		line.Reset()
		ids = append(ids, l.ID)
	}
	return ids, undecided, errors.Join(f.Sync(), syncFolder(r.Dir))
}

// endsWithin reports whether a file ends within a line.
func endsWithin(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}

// syncFolder makes the names of a folder survive a power cut.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// write writes a letter, encrypted when there is a cipher.
func (r *Retention) write(w io.Writer, l deadletter.Letter) error {
	if r.Cipher != nil {
		return ExportSealed(w, l, r.Cipher)
	}
	return Export(w, l)
}
