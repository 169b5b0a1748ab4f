package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
)

// Target puts a letter's work on its way again. It keeps the letter's id and
// key, and may be called again for the same letter after a crash. The
// outcome is reported with [Store.RecordRedrive], by the target or by the
// worker that does the work.
type Target func(ctx context.Context, l deadletter.Letter) error

// Redriver runs redrive jobs. Any number of processes may run one over the same
// store: a job belongs to one of them at a time. It is safe for concurrent use.
type Redriver struct {
	// Poll is how often jobs are looked for. Default 1 s. Set it before Run.
	Poll time.Duration

	store   Store
	owner   string
	targets map[string]Target // nil: known, and sent by another process
	log     *slog.Logger

	looks, steps pulse.Part
}

// NewRedriver returns a Redriver for the queues that have a target. A nil
// target is that of a queue whose letters another process sends: such a
// Redriver plans and starts jobs, and must not Run.
func NewRedriver(store Store, owner string, targets map[string]Target, log *slog.Logger) *Redriver {
	if log == nil {
		log = slog.Default()
	}
	r := &Redriver{store: store, owner: owner, targets: targets, log: log}
	r.looks.Name, r.steps.Name = "redrives", "redrives"
	return r
}

// Health returns the health of the look for jobs, and of those that this process has taken up.
func (r *Redriver) Health() Health { return Health(pulse.First(&r.looks, &r.steps)) }

// Plan says what a job would do, without doing it: the letters that it would
// redrive now.
func (r *Redriver) Plan(ctx context.Context, j Job) (Job, error) {
	j, err := j.withDefaults()
	if err != nil {
		return j, err
	}
	if _, ok := r.targets[j.Filter.Queue]; !ok {
		return j, fmt.Errorf("%w redrive: queue %q cannot be redriven", ErrInvalid, j.Filter.Queue)
	}
	j.Filter.State, j.Filter.MaxRedrives, j.Filter.Job, j.Filter.Outcome = deadletter.Dead, j.MaxRedrives, "", nil
	j.Total, err = r.store.Count(ctx, j.Filter)
	return j, err
}

// Start makes a job; a process that runs [Redriver.Run] takes it up, if there is anything
// to do.
func (r *Redriver) Start(ctx context.Context, j Job, id string) (Job, error) {
	j, err := r.Plan(ctx, j)
	if err != nil {
		return j, err
	}
	j.ID, j.State, j.Created = id, JobRunning, time.Now().UTC()
	if j.Total == 0 {
		j.State, j.Why = JobDone, "the filter chooses no letters" // and no process need take it up
	}
	// Letters that die from here on belong to a later job: a letter that dies
	// again is not sent around in circles.
	if j.Filter.Until.IsZero() {
		j.Filter.Until = j.Created.Add(time.Second)
	}
	return j, r.store.PutJob(ctx, j)
}

const (
	jobLease = 30 * time.Second
	jobPoll  = time.Second
	jobStep  = 250 * time.Millisecond
	// minOutcomes must be known before a failure ratio means anything.
	minOutcomes = 5
)

// Run takes up jobs until ctx ends.
func (r *Redriver) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for ctx.Err() == nil {
		var j Job
		var ok bool
		err := r.looks.Do(func() (err error) { j, ok, err = r.store.ClaimJob(ctx, r.owner, jobLease); return err })
		switch {
		case err != nil && ctx.Err() == nil:
			r.log.Warn("redrives not read", slog.String("error", err.Error()))
		case ok && r.targets[j.Filter.Queue] == nil:
			// Of a queue that another process sends for: out of the way of our
			// own jobs for a moment, then free for that process.
			if _, err := r.store.UpdateJob(ctx, j, 2*cmp.Or(r.Poll, jobPoll)); err == nil {
				continue
			}
		case ok:
			jobs.Go(func() { r.work(ctx, j) })
			continue
		}
		wait.Sleep(ctx, cmp.Or(r.Poll, jobPoll))
	}
}

// work runs one job until it is done, stopped, or taken over by another
// process.
func (r *Redriver) work(ctx context.Context, j Job) {
	allowance := 0.0
	if err := r.resume(ctx, &j); err != nil {
		r.log.Warn("redrive not resumed", slog.String("redrive", j.ID), slog.String("error", err.Error()))
		return
	}
	for ctx.Err() == nil {
		err := r.steps.Do(func() error {
			if err := r.count(ctx, &j); err != nil {
				return err
			}
			if j.State, j.Why = j.verdict(); j.State != JobRunning {
				return nil
			}
			allowance = min(allowance+j.Rate*jobStep.Seconds(), max(j.Rate, 1))
			sent, err := r.batch(ctx, &j, j.budget(int(allowance)))
			allowance -= float64(sent)
			return err
		})
		if err != nil {
			r.log.Warn("redrive", slog.String("redrive", j.ID), slog.String("error", err.Error()))
		}
		now, err := r.store.UpdateJob(ctx, j, jobLease)
		switch {
		case errors.Is(err, ErrFenced):
			return
		case err == nil && now.State != JobRunning:
			r.log.Info("redrive ended", slog.String("redrive", j.ID), slog.String("state", string(now.State)), slog.String("why", now.Why))
			return
		case err == nil:
			j = now
		}
		wait.Sleep(ctx, jobStep)
	}
}

// verdict says from the counts how the job goes on. Why says of a running job what its
// latest letter was refused for, and goes on to say so.
func (j *Job) verdict() (JobState, string) {
	known := j.Delivered + j.Failing
	why := ""
	switch {
	case j.Canary && j.Failing > 0 && j.Delivered == 0:
		why = "the canary failed"
	case known >= minOutcomes && float64(j.Failing)/float64(known) > j.StopRatio:
		why = fmt.Sprintf("%d of %d failed", j.Failing, known)
	default:
		return JobRunning, j.Why
	}
	if j.Why != "" {
		why += "; " + j.Why
	}
	return JobStopped, why
}

// budget returns how many letters may be sent now, of the rate's allowance.
func (j *Job) budget(n int) int {
	if j.Canary && j.Delivered == 0 {
		return max(min(n, 1-j.Begun), 0)
	}
	return n
}

// count reads from the store what became of the letters that the job has
// sent.
func (r *Redriver) count(ctx context.Context, j *Job) error {
	counts := map[deadletter.RedriveResult]int{}
	for _, o := range []deadletter.RedriveResult{deadletter.RedriveNone, deadletter.RedriveDelivered, deadletter.RedriveFailing, deadletter.RedriveDead} {
		n, err := r.store.Count(ctx, Filter{Job: j.ID, Outcome: &o})
		if err != nil {
			return err
		}
		counts[o] = n
	}
	j.Delivered, j.Failing = counts[deadletter.RedriveDelivered], counts[deadletter.RedriveFailing]+counts[deadletter.RedriveDead]
	j.Begun = counts[deadletter.RedriveNone] + j.Delivered + j.Failing
	return nil
}

// batch sends up to n letters. When none are left and all outcomes are known
// the job is done.
func (r *Redriver) batch(ctx context.Context, j *Job, n int) (sent int, err error) {
	if n <= 0 {
		return 0, nil
	}
	f := j.Filter
	f.NotJob, f.Limit = j.ID, min(n, MaxList) // a letter that died again waits for another job
	list, left, err := r.readable(ctx, f)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 && j.Begun == j.Delivered+j.Failing {
		j.State, j.Why = JobDone, cmp.Or(left, j.Why)
		return 0, nil
	}
	for _, l := range list {
		l, err := r.store.BeginRedrive(ctx, l.ID, j.ID, j.By, j.MaxRedrives)
		if errors.Is(err, ErrState) || errors.Is(err, ErrRedriveLimit) || errors.Is(err, ErrNotFound) {
			continue // another process was faster
		}
		if err == nil {
			err = r.send(ctx, j, l)
		}
		if err != nil {
			return sent, err
		}
		sent++
		j.Begun++
	}
	return sent, nil
}

// readable lists the first letters of a filter that can be read, and says what it had to
// leave before them.
func (r *Redriver) readable(ctx context.Context, f Filter) (list []deadletter.Letter, left string, err error) {
	for n := 0; ; f.Limit = MaxList {
		page, err := r.store.List(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for _, l := range page {
			if l.Unreadable == "" {
				list = append(list, l)
				continue
			}
			n++
			left = fmt.Sprintf("%d were not redriven, for example: %s", n, l.Unreadable)
		}
		if len(list) > 0 || len(page) < f.Limit {
			return list, left, nil
		}
		f.After = page[len(page)-1].ID
	}
}

// resume sends again what a crash may have left between being marked and being
// sent. Targets take that.
func (r *Redriver) resume(ctx context.Context, j *Job) error {
	none := deadletter.RedriveNone
	f := Filter{Job: j.ID, State: deadletter.Redriving, Outcome: &none, Limit: MaxList}
	for {
		list, err := r.store.List(ctx, f)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, l := range list {
			if r.targets[l.Queue] == nil {
				return fmt.Errorf("queue %q cannot be redriven", l.Queue)
			}
			if err := r.send(ctx, j, l); err != nil {
				return err
			}
			f.After = l.ID
		}
	}
}

// send hands a letter to its target. One that the target refuses is dead again,
// and the job and the audit have the reason: the job goes on with the others.
func (r *Redriver) send(ctx context.Context, j *Job, l deadletter.Letter) error {
	if err := l.CheckReadable(); err != nil {
		return err // a process that can read it sends it
	}
	err := r.targets[l.Queue](ctx, l)
	if !errors.Is(err, ErrRefused) {
		return err
	}
	j.Why = fmt.Sprintf("letter %s: %v", l.ID, err)
	r.log.Warn("redrive refused", slog.String("letter", l.ID), slog.String("error", err.Error()))
	if err := r.store.RecordRedrive(ctx, l.ID, deadletter.RedriveDead); err != nil {
		return err
	}
	return r.store.Audit(ctx, Entry{Who: l.RedrivenBy, Action: "redrive-refused", Target: l.ID, Detail: err.Error()})
}
