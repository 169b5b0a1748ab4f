package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// lateTask sends messages at a steady rate to a receiver that fails one in ten
// at first, and reads from the history how late the retries began.
func lateTask(ctx context.Context, t task) (r report, err error) {
	s, err := newService(ctx, t, flakyPath)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.run(ctx)
	m, err := newMeter(t.Profile)
	if err != nil {
		return r, err
	}
	n, err := s.steady(ctx, t.Rate, t.Length)
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second) // the first retry comes within one, a postponed one within ten
	defer cancel()
	if err := s.delivered(limited, n); err != nil {
		return r, fmt.Errorf("%d of %d messages delivered at %.0f a second", s.d.Stats().Delivered, n, t.Rate)
	}
	_, r.CPU = m.read(n)
	s.stop()
	if err := <-s.done; err != nil {
		return r, err
	}
	late, err := s.lateness(ctx)
	if err != nil {
		return r, err
	}
	r.Earliest, r.P50, r.P99, r.Most = late[0], late[len(late)/2], late[len(late)*99/100], late[len(late)-1]
	return r, nil
}

// steady accepts messages at the rate, a hundredth of a second's at once.
func (s *service) steady(ctx context.Context, rate float64, length time.Duration) (n int, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < length; {
		<-tick.C
		batch := make([]webhook.Message, int(time.Since(began).Seconds()*rate)-n)
		for i := range batch {
			batch[i] = webhook.Message{Endpoints: []string{"a"}, Body: body}
		}
		if len(batch) == 0 {
			continue
		}
		if _, err := s.d.Accept(ctx, batch...); err != nil {
			return n, err
		}
		n += len(batch)
	}
	return n, nil
}

// lateness returns how many milliseconds after their time the retries began,
// in order.
func (s *service) lateness(ctx context.Context) (late []float64, err error) {
	rows, err := s.pools[len(s.pools)-1].QueryContext(ctx, `SELECT at - due FROM forbear_attempts WHERE n > 1`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var us float64
		if err := rows.Scan(&us); err != nil {
			return nil, err
		}
		late = append(late, us/1000)
	}
	if len(late) == 0 {
		return nil, errors.Join(errors.New("no retry was made"), rows.Err())
	}
	slices.Sort(late)
	return late, rows.Err()
}

// idleTask runs a service that has nothing to do. Its figure of processor time
// is that of a second.
func idleTask(ctx context.Context, t task) (r report, err error) {
	s, err := newService(ctx, t, "")
	if err != nil {
		return r, err
	}
	s.run(ctx)
	time.Sleep(time.Second) // what belongs to the start
	m, err := newMeter("")
	if err != nil {
		return r, err
	}
	time.Sleep(t.Length)
	_, used := m.read(1)
	r.CPU = used / t.Length.Seconds()
	return r, s.end()
}
