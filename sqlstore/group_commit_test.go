package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

var errBroken = errors.New("broken")

// failOn fails the first n statements that begin with text; n < 0: all.
func failOn(text string, n int) func(string) error {
	return func(s string) error {
		if n == 0 || !strings.HasPrefix(s, text) {
			return nil
		}
		n--
		return errBroken
	}
}

// ends returns what the writes were told.
func ends(t *testing.T, ops ...*op) (errs []error) {
	t.Helper()
	for i, o := range ops {
		select {
		case err := <-o.done:
			errs = append(errs, err)
		default:
			t.Fatalf("write %d was told nothing", i)
		}
	}
	return errs
}

func wantLog(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if !slices.Equal(f.log, want) {
		t.Errorf("statements\n got %q\nwant %q", f.log, want)
	}
}

func TestGroupIsOneTransaction(t *testing.T) {
	for _, tt := range []struct {
		d     dialect
		begin string
	}{{sqlite{}, "BEGIN IMMEDIATE"}, {postgres{}, "BEGIN ISOLATION"}} {
		w, f := fakeWriter(t, tt.d)
		a, b := f.op("A"), f.op("B")
		w.commit([]*op{a, b})
		if errs := ends(t, a, b); !slices.Equal(errs, []error{nil, nil}) {
			t.Errorf("%T: told %v", tt.d, errs)
		}
		if i := slices.Index(f.log, tt.begin); i < 0 || !slices.Equal(f.log[i:], []string{tt.begin, "A", "B", "COMMIT"}) {
			t.Errorf("%T: statements %q", tt.d, f.log)
		}
	}
}

// One bad member costs the others a rollback, and nothing else.
func TestMembersAreReplayedOneByOne(t *testing.T) {
	w, f := fakeWriter(t, sqlite{})
	f.fail = failOn("WRONG", -1)
	a, b, c := f.op("A"), f.op("WRONG"), f.op("C")
	w.commit([]*op{a, b, c})
	if errs := ends(t, a, b, c); errs[0] != nil || !errors.Is(errs[1], errBroken) || errs[2] != nil {
		t.Errorf("told %v", errs)
	}
	wantLog(t, f, "BEGIN IMMEDIATE", "A", "WRONG", "ROLLBACK",
		"BEGIN IMMEDIATE", "A", "COMMIT", "BEGIN IMMEDIATE", "WRONG", "ROLLBACK", "BEGIN IMMEDIATE", "C", "COMMIT")
}

// A commit that fails has written nothing, whatever the members were told
// before: all are run again.
func TestFailedCommitIsReplayed(t *testing.T) {
	w, f := fakeWriter(t, sqlite{})
	f.fail = failOn("COMMIT", 1)
	a, b := f.op("A"), f.op("B")
	w.commit([]*op{a, b})
	if errs := ends(t, a, b); errs[0] != nil || errs[1] != nil {
		t.Errorf("told %v", errs)
	}
	wantLog(t, f, "BEGIN IMMEDIATE", "A", "B", "COMMIT", "ROLLBACK",
		"BEGIN IMMEDIATE", "A", "COMMIT", "BEGIN IMMEDIATE", "B", "COMMIT")
}

// What the store refuses by itself would only be refused again. Another error of
// a single write may have been the moment's.
func TestOwnErrorsAreNotReplayed(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		runs int
	}{{"own", own(webhook.ErrConflict), 1}, {"the database's", errBroken, 2}} {
		w, _ := fakeWriter(t, sqlite{})
		runs := 0
		o := &op{done: make(chan error, 1), run: func(*tx) error { runs++; return tt.err }}
		w.commit([]*op{o})
		if errs := ends(t, o); !errors.Is(errs[0], tt.err) || runs != tt.runs {
			t.Errorf("%s: told %v after %d runs, want %d", tt.name, errs[0], runs, tt.runs)
		}
	}
	if err := own(webhook.ErrConflict); !errors.Is(err, webhook.ErrConflict) || err.Error() != webhook.ErrConflict.Error() {
		t.Errorf("an own error hides its cause: %v", err)
	}
}

// A connection on which no transaction begins is given up, and so is one whose
// rollback failed.
func TestBadConnectionIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		d     dialect
		fail  []string // once each
		conns int
	}{
		{"nothing fails", sqlite{}, nil, 1},
		{"begin", sqlite{}, []string{"BEGIN"}, 2},
		{"rolled back by SQLite", sqlite{}, []string{"A", "ROLLBACK"}, 2},
		{"rollback on PostgreSQL", postgres{}, []string{"A", "ROLLBACK"}, 2},
		{"settings on PostgreSQL", postgres{}, []string{"SET"}, 2},
		{"all that the pool has on PostgreSQL", postgres{}, []string{"SET", "SET", "SET", "SET", "SET"}, 6},
	} {
		w, f := fakeWriter(t, tt.d)
		left := slices.Clone(tt.fail)
		f.fail = func(text string) error {
			for i, s := range left {
				if strings.HasPrefix(text, s) {
					left = slices.Delete(left, i, i+1)
					return errBroken
				}
			}
			return nil
		}
		o := f.op("A")
		w.commit([]*op{o})
		if err := ends(t, o)[0]; err != nil || f.conns != tt.conns || len(left) > 0 {
			t.Errorf("%s: told %v over %d connections, want %d; %v did not fail", tt.name, err, f.conns, tt.conns, left)
		}
	}
}

// Locks are taken in one order by all writers: keys, new deliveries, leased
// rows, claims, alerts.
func TestLocksAreTakenInOrder(t *testing.T) {
	w, f := fakeWriter(t, postgres{})
	f.rows = func(text string) [][]driver.Value {
		if strings.Contains(text, "INSERT INTO forbear_deliveries") {
			return [][]driver.Value{{"m", "a"}}
		}
		return nil
	}
	step := func(name string) func(*tx) error { return func(*tx) error { f.note(name); return nil } }
	claim := &op{run: step("claim"), done: make(chan error, 1)}
	back := &op{done: make(chan error, 1), keys: 1, run: func(t *tx) error {
		f.note("write-back")
		t.raise(queue.Alert{Queue: "q", Reason: "z"})
		t.raise(queue.Alert{Queue: "q", Reason: "a"})
		return nil
	}}
	accept := &op{done: make(chan error, 1), accept: &acceptance{rows: []encoded{{Message: webhook.Message{ID: "m", Endpoints: []string{"a"}}}}}}
	w.commit([]*op{back, claim, accept})
	if errs := ends(t, claim, back, accept); !slices.Equal(errs, []error{nil, nil, nil}) {
		t.Fatalf("told %v", errs)
	}
	wantLog(t, f, "SET enable_hashjoin", "BEGIN ISOLATION", "SELECT pg_advisory_xact_lock($1,", "WITH x", "write-back", "claim", "INSERT INTO", "INSERT INTO", "COMMIT")
	if !accept.accept.rows[0].fresh {
		t.Error("the new message is called a duplicate")
	}
}

// What one statement does needs no transaction around it on PostgreSQL; what may have
// to be taken back, holds locks or shares a group with such does.
func TestOneStatementIsItsOwnTransaction(t *testing.T) {
	accept := func(endpoints ...string) *op {
		return &op{done: make(chan error, 1), accept: &acceptance{rows: []encoded{{Message: webhook.Message{ID: "m" + endpoints[0], Endpoints: endpoints}}}}}
	}
	ordered := accept("a")
	ordered.keys = 1
	for _, tt := range []struct {
		name  string
		group []*op
		bare  bool
	}{
		{"messages", []*op{accept("a"), accept("b")}, true},
		{"several endpoints", []*op{accept("a"), accept("b", "c")}, false},
		{"an ordered one", []*op{ordered}, false},
		{"another write", []*op{accept("a"), {run: func(*tx) error { return nil }}}, false},
		{"a claim", []*op{{apart: true, run: func(*tx) error { return nil }}}, true},
		{"more than one statement takes", slices.Repeat([]*op{accept("a")}, maxRows+1), false},
	} {
		if got := (postgres{}).bare(tt.group); got != tt.bare {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.bare)
		}
	}
	w, f := fakeWriter(t, postgres{})
	both := func(string) [][]driver.Value { return [][]driver.Value{{"ma", "a"}, {"mb", "b"}} }
	f.rows = both
	a, b := accept("a"), accept("b")
	w.commit([]*op{a, b})
	if errs := ends(t, a, b); !slices.Equal(errs, []error{nil, nil}) {
		t.Errorf("told %v", errs)
	}
	wantLog(t, f, "SET enable_hashjoin", "WITH x")
	// One that fails is replayed like any other.
	w, f = fakeWriter(t, postgres{})
	f.fail, f.rows = failOn("WITH x", 2), both
	a, b = accept("a"), accept("b")
	w.commit([]*op{a, b})
	if errs := ends(t, a, b); !errors.Is(errs[0], errBroken) || errs[1] != nil {
		t.Errorf("told %v, want the first replay to fail", errs)
	}
}

// Of the same message twice in a group the first is added, and the second finds it known.
func TestSameMessageTwiceInAGroup(t *testing.T) {
	accept := func(id string) *op {
		return &op{done: make(chan error, 1), accept: &acceptance{rows: []encoded{{Message: webhook.Message{ID: id, Endpoints: []string{"a"}}}}}}
	}
	w, f := fakeWriter(t, postgres{})
	f.rows = func(text string) [][]driver.Value {
		if strings.HasPrefix(text, "WITH x") {
			return [][]driver.Value{{"m", "a"}, {"n", "a"}}
		}
		return [][]driver.Value{{int64(1), int64(0), "", "", []byte{}, int64(0), false}}
	}
	a, b, again := accept("m"), accept("n"), accept("m")
	w.commit([]*op{a, again, b})
	if errs := ends(t, a, again, b); !slices.Equal(errs, []error{nil, nil, nil}) {
		t.Errorf("told %v", errs)
	}
	if a, b, again := a.accept.rows[0].fresh, b.accept.rows[0].fresh, again.accept.rows[0].fresh; !a || !b || again {
		t.Errorf("new %v, %v and again %v", a, b, again)
	}
}

// A write that takes locks of its own shares no transaction on PostgreSQL, and
// is not lost when it comes in the middle of a group.
func TestLoneWriteSharesNothing(t *testing.T) {
	for _, tt := range []struct {
		d      dialect
		groups []int
	}{{sqlite{}, []int{4}}, {postgres{}, []int{1, 1, 2}}} {
		ops := make(chan *op, 4)
		for _, alone := range []bool{false, true, false, false} {
			o := &op{accept: &acceptance{}}
			if alone {
				o.accept = nil
			}
			ops <- o
		}
		close(ops)
		w := &writer{db: &DB{d: tt.d}, ops: ops}
		var groups []int
		for o := w.first(); o != nil; o = w.first() {
			groups = append(groups, len(w.gather([]*op{o})))
		}
		if !slices.Equal(groups, tt.groups) {
			t.Errorf("%T: groups of %v, want %v", tt.d, groups, tt.groups)
		}
	}
}

// Only a group of claims alone is committed without the disk, and only on
// SQLite; a writer that cannot go back to waiting gives up its connection.
func TestOnlyClaimsGoUnsynced(t *testing.T) {
	claim := func() *op {
		return &op{volatile: true, run: func(*tx) error { return nil }, done: make(chan error, 1)}
	}
	for _, tt := range []struct {
		name  string
		d     dialect
		group func(f *fake) []*op
		want  []string
	}{
		{"claims", sqlite{}, func(*fake) []*op { return []*op{claim(), claim()} }, []string{"PRAGMA synchronous", "BEGIN IMMEDIATE", "COMMIT", "PRAGMA synchronous"}},
		{"with another", sqlite{}, func(f *fake) []*op { return []*op{claim(), f.op("A")} }, []string{"BEGIN IMMEDIATE", "A", "COMMIT"}},
		{"on PostgreSQL", postgres{}, func(*fake) []*op { return []*op{claim()} }, []string{"SET enable_hashjoin", "BEGIN ISOLATION", "COMMIT"}},
	} {
		w, f := fakeWriter(t, tt.d)
		w.commit(tt.group(f))
		if !slices.Equal(f.log, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, f.log, tt.want)
		}
	}
	w, f := fakeWriter(t, sqlite{})
	f.fail = failOn("PRAGMA synchronous = FULL", 1)
	o := claim()
	w.commit([]*op{o})
	if err := ends(t, o)[0]; err != nil || f.conns != 2 {
		t.Errorf("told %v over %d connections: want a replay on another one", err, f.conns)
	}
}

// A caller that leaves ends its own wait; its write is made with the others.
func TestCanceledCallerLeavesItsWrite(t *testing.T) {
	f := &fake{}
	pool := sql.OpenDB(f)
	defer func() { _ = pool.Close() }()
	db := SQLite(pool, pool)
	begun, goOn := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone home")
	made := false
	go func() {
		<-begun
		cancel(gone)
	}()
	n, err := do(ctx, db, func(*tx) (int, error) {
		close(begun)
		<-goOn
		made = true
		return 7, nil
	})
	if !errors.Is(err, gone) || n != 0 {
		t.Errorf("the caller got %d, %v", n, err)
	}
	close(goOn)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if !made || f.log[len(f.log)-1] != "COMMIT" {
		t.Errorf("made %v, statements %q", made, f.log)
	}
	if err := db.write(t.Context(), func(*tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
