package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
)

var quiet = slog.New(slog.DiscardHandler)

// bury puts n letters of the queue "orders" into a store.
func bury(t *testing.T, s queue.Store, n int) {
	t.Helper()
	for i := range n {
		l := deadletter.Letter{
			ID: fmt.Sprintf("l%03d", i), Queue: "orders", Destination: "worker", EventID: fmt.Sprint("e", i), Reason: "exhausted",
			Payload: []byte(`{"card":"4111"}`), Headers: []deadletter.Header{{Name: "Authorization", Value: "Bearer planted"}, {Name: "X-Plain", Value: "seen"}},
			History: []deadletter.Attempt{{Number: 1, Response: "planted answer"}},
		}
		if err := s.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJobsAreChecked(t *testing.T) {
	s := &memstore.Store{}
	bury(t, s, 3)
	r := queue.NewRedriver(s, "w", map[string]queue.Target{"orders": nil}, quiet)
	orders := queue.Filter{Queue: "orders"}
	for _, c := range []struct {
		name, want string
		job        queue.Job
	}{
		{"nobody asked", "name the operator", queue.Job{Filter: orders}},
		{"rate", "rate -1 is outside", queue.Job{Filter: orders, By: "ann", Rate: -1}},
		{"too fast", "rate 501 is outside", queue.Job{Filter: orders, By: "ann", Rate: 501}},
		{"ratio", "stop_ratio 2 is outside", queue.Job{Filter: orders, By: "ann", StopRatio: 2}},
		{"redrives", "max_redrives -1 is negative", queue.Job{Filter: orders, By: "ann", MaxRedrives: -1}},
		{"unknown queue", "cannot be redriven", queue.Job{Filter: queue.Filter{Queue: "none"}, By: "ann"}},
	} {
		if _, err := r.Plan(t.Context(), c.job); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	j, err := r.Plan(t.Context(), queue.Job{Filter: orders, By: "ann"})
	if err != nil || j.Total != 3 || j.Rate != queue.DefaultRate || j.StopRatio != queue.DefaultStopRatio || j.MaxRedrives != queue.DefaultMaxRedrives {
		t.Errorf("got %+v, %v", j, err)
	}
	if jobs, _ := s.JobPage(t.Context(), "", "", 100); len(jobs) != 0 {
		t.Errorf("a plan is no job: %+v", jobs)
	}
}

// redriving runs a redriver whose target is told of each letter.
func redriving(t *testing.T, s *memstore.Store, target queue.Target) *queue.Redriver {
	t.Helper()
	r := queue.NewRedriver(s, "w", map[string]queue.Target{"orders": target}, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// A process that does not send for a queue leaves its jobs to the one that does.
func TestRedriveOfAnotherProcessesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 3)
		other := queue.NewRedriver(s, "other", map[string]queue.Target{"webhooks": func(context.Context, deadletter.Letter) error {
			t.Error("a letter of another queue")
			return nil
		}, "orders": nil}, quiet)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go other.Run(ctx)
		start(t, other, queue.Job{})
		time.Sleep(time.Minute) // with the job all to itself
		redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
			return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
		})
		time.Sleep(5 * time.Minute)
		if j, err := s.Job(t.Context(), "job"); err != nil || j.State != queue.JobDone || j.Delivered != 3 {
			t.Errorf("got %+v, %v", j, err)
		}
	})
}

// A letter that fails again at once is not sent again by the same job.
func TestRedriveSendsALetterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 3)
		sends := map[string]int{}
		var mu sync.Mutex
		r := redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			sends[l.EventID]++
			return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDead)
		})
		start(t, r, queue.Job{StopRatio: 1})
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if j, err := s.Job(t.Context(), "job"); err != nil || j.State != queue.JobDone || j.Failing != 3 {
			t.Errorf("got %+v, %v", j, err)
		}
		for id, n := range sends {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
	})
}

func start(t *testing.T, r *queue.Redriver, j queue.Job) {
	t.Helper()
	j.Filter, j.By = queue.Filter{Queue: "orders"}, "ann"
	if _, err := r.Start(t.Context(), j, "job"); err != nil {
		t.Fatal(err)
	}
}

// A redrive sends each letter once, at its rate, and is done when the outcomes
// are known.
func TestRedriveKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 100)
		var mu sync.Mutex
		var sent []time.Time
		ids := map[string]bool{}
		r := redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			sent, ids[l.EventID] = append(sent, time.Now()), true
			return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
		})
		start(t, r, queue.Job{Rate: 20})
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(sent) != 100 || len(ids) != 100 {
			t.Fatalf("%d sends of %d letters, want 100 of 100", len(sent), len(ids))
		}
		if took := sent[99].Sub(sent[0]); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("100 letters at 20 a second took %v", took)
		}
		j, err := s.Job(t.Context(), "job")
		if err != nil || j.State != queue.JobDone || j.Delivered != 100 || j.Begun != 100 {
			t.Errorf("got %+v, %v", j, err)
		}
	})
}

// A pause holds the letters that are left; a canceled redrive sends none.
func TestRedriveIsPausedAndCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 100)
		var mu sync.Mutex
		sent := 0
		count := func() int { mu.Lock(); defer mu.Unlock(); return sent }
		r := redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
			mu.Lock()
			sent++
			mu.Unlock()
			return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
		})
		start(t, r, queue.Job{Rate: 10})
		time.Sleep(3 * time.Second)
		set := func(state queue.JobState) {
			if err := s.SetJobState(t.Context(), "job", state, "bob"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		set(queue.JobPaused)
		paused := count()
		time.Sleep(time.Minute)
		if n := count(); n != paused || n == 0 || n > 50 {
			t.Errorf("%d letters, and %d during a pause", paused, n-paused)
		}
		set(queue.JobRunning)
		time.Sleep(2 * time.Second)
		set(queue.JobCanceled)
		canceled := count()
		time.Sleep(time.Minute)
		if n := count(); n != canceled || canceled <= paused || n == 100 {
			t.Errorf("%d letters when it was canceled, %d later", canceled, n)
		}
	})
}

// A letter that a crash left between being marked and being sent is sent again.
func TestRedriveResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 2)
		if err := s.PutJob(t.Context(), queue.Job{ID: "job", Filter: queue.Filter{Queue: "orders", State: deadletter.Dead}, By: "ann", State: queue.JobRunning, Rate: 10, StopRatio: 1, MaxRedrives: 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.BeginRedrive(t.Context(), "l000", "job", "ann", 3); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		got := map[string]int{}
		redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			got[l.ID]++
			return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
		})
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got["l000"] != 1 || got["l001"] != 1 {
			t.Errorf("sent %v, want each once", got)
		}
	})
}

// flaky is a notifier that fails until it is mended.
type flaky struct {
	mu   sync.Mutex
	down bool
	got  []queue.Alert
}

func (f *flaky) Name() string { return "flaky" }

func (f *flaky) Notify(_ context.Context, a queue.Alert) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return errors.New("down")
	}
	f.got = append(f.got, a)
	return nil
}

func (f *flaky) told() []queue.Alert { f.mu.Lock(); defer f.mu.Unlock(); return f.got }

func (f *flaky) set(down bool) { f.mu.Lock(); f.down = down; f.mu.Unlock() }

// One notifier that fails neither loses an alert nor repeats it to another.
func TestAlerterTellsEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bad, good := &flaky{down: true}, named{&flaky{}, "good"}
		a := queue.NewAlerter(s, quiet, bad, good)
		bury(t, s, 5) // all before the first is told of, or they are two alerts
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { a.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Hour)
		if h := a.Health(); h[1].Healthy || h[1].Failures < 5 || h[1].Error != "down" || !h[2].Healthy {
			t.Errorf("health is %+v", h)
		}
		bad.set(false)
		time.Sleep(15 * time.Minute)
		if a, b := bad.told(), good.told(); len(a) != 1 || a[0].Count != 5 || len(b) != 1 {
			t.Errorf("told %+v and %+v, want the five letters once each", a, b)
		}
		if h := a.Health(); !h[1].Healthy || h[1].Failures != 0 {
			t.Errorf("health is %+v", h)
		}
		if h := a.Test(t.Context(), "ann"); len(h) != 3 || len(bad.told()) != 2 || bad.told()[1].Queue != queue.TestQueue {
			t.Errorf("the test button: %+v, %+v", h, bad.told())
		}
	})
}

type named struct {
	*flaky
	name string
}

func (n named) Name() string { return n.name }

// What a letter was refused for stands in the job, also in one that its canary stopped.
func TestRedriveSaysWhatWasRefused(t *testing.T) {
	for _, c := range []struct {
		canary bool
		want   string
	}{
		{true, "stopped: the canary failed; letter l000: cannot be redriven: no receiver"},
		{false, "done: letter l000: cannot be redriven: no receiver"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &memstore.Store{}
			bury(t, s, 3)
			r := redriving(t, s, func(ctx context.Context, l deadletter.Letter) error {
				if l.ID == "l000" {
					return fmt.Errorf("%w: no receiver", queue.ErrRefused)
				}
				return s.RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
			})
			start(t, r, queue.Job{Canary: c.canary})
			time.Sleep(time.Minute)
			j, err := s.Job(t.Context(), "job")
			if got := fmt.Sprint(j.State, ": ", j.Why); got != c.want || err != nil {
				t.Errorf("with a canary %v: %s, %v; want %s", c.canary, got, err, c.want)
			}
		})
	}
}
