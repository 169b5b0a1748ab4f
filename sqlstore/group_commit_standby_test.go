package sqlstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// coded is an error with the code of PostgreSQL's and of SQLite's.
type coded struct {
	state string
	code  int
}

func (coded) Error() string      { return "coded" }
func (c coded) SQLState() string { return c.state }
func (c coded) Code() int        { return c.code }

// A server that takes no writes may have become a standby, and a good rollback says nothing
// about that: the writer, and what is done beside it, look for the primary by another
// connection.
func TestStandbyIsLeft(t *testing.T) {
	for _, fails := range []int{1, 3} {
		w, f := fakeWriter(t, postgres{})
		left := fails
		f.fail = func(text string) error {
			if text != "A" || left == 0 {
				return nil
			}
			left--
			return coded{state: "25006"}
		}
		for f.conns < fails+1 {
			before := f.conns
			o := f.op("A")
			w.commit([]*op{o})
			if err := ends(t, o)[0]; err == nil {
				break
			}
			if f.conns == before {
				t.Fatalf("after %d failures it stays", fails)
			}
		}
		if f.conns != fails+1 {
			t.Errorf("%d failures, and %d connections", fails, f.conns)
		}
	}
	w, f := fakeWriter(t, postgres{})
	f.fail = func(text string) error { return coded{state: "25006"} }
	w.db.slots = slots{d: w.db.d, pool: w.pool, known: true}
	for want := 1; want < 4; want++ {
		err := w.db.d.single(t.Context(), w.db, func(t *tx) error { return t.execOnce("A") })
		if err == nil || f.conns != want {
			t.Fatalf("beside the writers: %v, by %d connections, want %d", err, f.conns, want)
		}
	}
}

// A connection is not kept for good: what it leads to may have stopped being the primary
// without a word.
func TestConnectionHasAnAge(t *testing.T) {
	w, f := fakeWriter(t, postgres{})
	for want := 1; want < 4; want++ {
		for range 2 {
			o := f.op("A")
			w.commit([]*op{o})
			if err := ends(t, o)[0]; err != nil || f.conns != want {
				t.Fatalf("told %v, by %d connections, want %d", err, f.conns, want)
			}
		}
		if left := time.Until(w.tx.until); left > connectionAge || left < connectionAge/4 {
			t.Errorf("it is kept for %v", left)
		}
		w.tx.until = time.Now()
	}
}

// Where nothing begins, none of a group is to blame: each of hundreds would only wait for
// the same, one after the other. A file that others have locked was waited for already.
func TestWhatDoesNotBeginIsNotReplayed(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    dialect
		err  error
		want int // tries
	}{
		{"unreachable", postgres{}, errBroken, 2},
		{"locked", sqlite{}, coded{code: 5}, 1},
	} {
		w, f := fakeWriter(t, tt.d)
		f.fail = func(text string) error {
			if strings.HasPrefix(text, "BEGIN") {
				return tt.err
			}
			return nil
		}
		ops := make([]*op, 20)
		for i := range ops {
			ops[i] = f.op("A")
		}
		w.commit(ops)
		for _, err := range ends(t, ops...) {
			if !errors.Is(err, tt.err) {
				t.Errorf("%s: told %v", tt.name, err)
			}
		}
		tries := 0
		for _, line := range f.log {
			if strings.HasPrefix(line, "BEGIN") {
				tries++
			}
		}
		if tries != tt.want || slices.Contains(f.log, "A") {
			t.Errorf("%s: %d tries: %q", tt.name, tries, f.log)
		}
	}
}
