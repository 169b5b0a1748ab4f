package idemfixture

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// check holds what came of a scenario to what was expected.
func (w *eventWorld) check(e *eventExpectation) {
	t := w.t
	t.Helper()
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	letters := w.letters()
	raised := w.alerts()
	for _, c := range []struct {
		name string
		got  int
		want anyOf
	}{
		{"effects", w.effects, e.Effects},
		{"attempts", w.attempts, e.Attempts},
		{"acks", w.acks, e.Acks},
		{"dlq", len(letters), e.DLQ},
		{"alerts", raised, e.Alerts},
		{"redriven", len(w.redriven), e.Redriven},
	} {
		if c.want != nil && !c.want.allows(c.got) {
			t.Errorf("%d %s, want %v", c.got, c.name, c.want)
		}
	}
	if raised < e.AlertsMin || e.AlertsMin > 0 && w.alerted.Load() == 0 {
		t.Errorf("%d alerts raised, %d told, want %d", raised, w.alerted.Load(), e.AlertsMin)
	}
	if e.RedrivenMax != nil && len(w.redriven) > *e.RedrivenMax {
		t.Errorf("%d redriven, at most %d", len(w.redriven), *e.RedrivenMax)
	}
	if rate := peak(w.redriven); e.MaxRate > 0 && float64(rate) > e.MaxRate {
		t.Errorf("%d redriven within a second, at most %v", rate, e.MaxRate)
	}
	if e.P99WaitMS > 0 {
		slices.Sort(w.waits)
		if len(w.waits) == 0 {
			t.Error("nothing was handled, so that nothing waited")
		} else if p99 := w.waits[(len(w.waits)*99-1)/100]; p99 > time.Duration(e.P99WaitMS)*time.Millisecond {
			t.Errorf("p99 of the waits is %v, at most %d ms", p99, e.P99WaitMS)
		}
	}
	if len(e.DLQHas) > 0 && len(letters) == 0 {
		t.Error("no dead letter to look at")
	}
	for _, l := range letters {
		for _, what := range e.DLQHas {
			w.letterHas(l, what)
		}
	}
	if e.Metric != "" {
		w.metric(e.Metric)
	}
}

// letters are those in the queue.
func (w *eventWorld) letters() []deadletter.Letter {
	w.t.Helper()
	list, err := w.db.DeadLetters().List(w.t.Context(), queue.Filter{State: deadletter.Dead, Limit: queue.MaxList})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list { // a list leaves the payload out
		if list[i], err = w.db.DeadLetters().Get(w.t.Context(), list[i].ID); err != nil {
			w.t.Fatal(err)
		}
	}
	return list
}

// alerts lets the alerter do its work and counts what was raised.
func (w *eventWorld) alerts() (n int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		queue.NewAlerter(w.db.DeadLetters(), slog.New(slog.DiscardHandler), (*pager)(w)).Run(ctx)
		close(done)
	}()
	time.Sleep(3 * time.Second)
	cancel()
	<-done
	list, err := w.db.DeadLetters().AlertPage(w.t.Context(), 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range list {
		n += a.Count
	}
	return n
}

// pager is who is told of alerts.
type pager eventWorld

func (*pager) Name() string { return "pager" }

func (p *pager) Notify(context.Context, queue.Alert) error {
	p.alerted.Add(1)
	return nil
}

// letterHas checks one thing that a dead letter must tell.
func (w *eventWorld) letterHas(l deadletter.Letter, what string) {
	t := w.t
	t.Helper()
	sent, known := w.published[l.EventID]
	ok := false
	switch name, header := strings.CutPrefix(what, "headers."); {
	case header:
		v := func(list []deadletter.Header) string {
			i := slices.IndexFunc(list, func(h deadletter.Header) bool { return strings.EqualFold(h.Name, name) })
			if i < 0 {
				return ""
			}
			return list[i].Value
		}
		ok = v(l.Headers) != "" && v(l.Headers) == v(sent.Headers)
	case what == "payload_bytes_equal":
		ok = known && string(l.Payload) == string(sent.Data)
	case what == "event id":
		ok = known && l.EventID == sent.ID
	case what == "source":
		ok = known && l.Source == sent.Source
	case what == "attempts":
		ok = l.Attempts > 0 && l.Attempts == w.attempts
	case what == "first and last failure time":
		ok = !l.FirstAttempt.IsZero() && !l.LastAttempt.Before(l.FirstAttempt)
	case what == "error class":
		ok = l.ErrorType != ""
	case what == "queue":
		ok = l.Queue != ""
	case what == "reason":
		ok = l.Reason != ""
	default:
		t.Errorf("dlq_has %q is not understood", what)
		return
	}
	if !ok {
		t.Errorf("the dead letter lacks %s: %+v", what, l)
	}
}

// peak is the largest number within a second.
func peak(times []time.Time) (most int) {
	for i := range times {
		n := 0
		for _, at := range times[i:] {
			if at.Sub(times[i]) < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// metric checks "name{label}=value", over all values of the label.
func (w *eventWorld) metric(want string) {
	t := w.t
	t.Helper()
	series, value, ok := strings.Cut(want, "=")
	name, label, braces := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	number, err := strconv.ParseFloat(value, 64)
	if !ok || !braces || err != nil {
		t.Fatalf("metric %q is not understood", want)
	}
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum, found := 0.0, false
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() != "" {
					found = true
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	if !found || sum != number {
		have, _ := json.Marshal(families)
		t.Errorf("metric %s is %v (found %v), want %v in %.400s", series, sum, found, number, have)
	}
}
