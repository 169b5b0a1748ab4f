package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverJob is a job of River's: a POST of the body, which it stores as JSON.
type riverJob struct {
	Body string `json:"body"`
}

// Kind implements [river.JobArgs].
func (riverJob) Kind() string { return "post" }

type riverWorker struct {
	river.WorkerDefaults[riverJob]
	client *http.Client
	url    string
	done   atomic.Int64
}

// Work implements [river.Worker].
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverJob]) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader([]byte(job.Args.Body)))
	if err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	w.done.Add(1)
	return nil
}

// riverTask has as many workers as forbear has slots. The tuned one fetches as
// often as River permits.
func riverTask(ctx context.Context, t task) (r report, err error) {
	cfg, err := pgxpool.ParseConfig(t.Database)
	if err != nil {
		return r, err
	}
	cfg.MaxConns = 16 // as forbear's pool
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return r, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return r, err
	}
	w := &riverWorker{url: t.Sink, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	rc := &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: senders}}, Workers: workers, Logger: slog.New(slog.DiscardHandler)}
	if t.Kind == "river-tuned" {
		rc.FetchCooldown, rc.FetchPollInterval = river.FetchCooldownMin, 5*time.Millisecond
	}
	client, err := river.NewClient(driver, rc)
	if err != nil {
		return r, err
	}
	return riverTurn(ctx, t, client, w)
}

func riverTurn[T any](ctx context.Context, t task, client *river.Client[T], w *riverWorker) (r report, err error) {
	m, err := newMeter("")
	if err != nil {
		return r, err
	}
	var next atomic.Int64
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			for int(next.Add(1)) <= t.Messages && errs[i] == nil {
				_, errs[i] = client.Insert(ctx, riverJob{string(body)}, nil)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	r.Accepted, _ = m.read(t.Messages)
	if m, err = newMeter(t.Profile); err != nil {
		return r, err
	}
	if err := client.Start(ctx); err != nil {
		return r, err
	}
	for w.done.Load() < int64(t.Messages) {
		time.Sleep(2 * time.Millisecond)
	}
	r.Delivered, r.CPU = m.read(t.Messages)
	return r, client.Stop(ctx)
}
