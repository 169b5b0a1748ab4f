package driver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/forbear-go/forbear/internal/report"
)

// watchFiles judges, and judges again whenever a file has changed, until the
// context ends. Without -o it prints what is new or gone; with it, each round
// writes its reports in full, for editors that read them.
// What is wrong meanwhile, a file half written or settings that cannot be read,
// is said and does not end it.
func (o *options) watchFiles(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	w := &watcher{options: o, stdout: stdout, stderr: stderr, known: map[string]report.Finding{}, dirs: o.moduleAbove()}
	for {
		// The look is from before the round, so that a file that changes during it is
		// seen. Of folders that the round adds there is no earlier one.
		known := slices.Clone(w.dirs)
		before := snapshot(o.watched(known))
		if err := w.round(ctx); err != nil && ctx.Err() == nil {
			return 0, err
		}
		added := slices.DeleteFunc(slices.Clone(w.dirs), func(dir string) bool { return slices.Contains(known, dir) })
		maps.Copy(before, snapshot(added, nil))
		if !w.change(ctx, before) {
			return ExitPass, nil
		}
	}
}

// watcher is what one round of watching leaves for the next.
type watcher struct {
	*options
	stdout, stderr io.Writer
	dirs           []string // of the modules; none is ever left out, since a faulty go.mod hides them
	known          map[string]report.Finding
	said           string // on standard error
	status         string
}

// round judges once and shows what has changed. Its errors are those of
// writing.
func (w *watcher) round(ctx context.Context) error {
	if len(w.outputs) > 0 {
		fmt.Fprintln(w.stderr, "forbear lint: judging")
	}
	var said bytes.Buffer
	rep, v, err := w.options.round(ctx, &said)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		fmt.Fprintln(&said, "forbear lint: could not judge:", err)
	}
	if said.String() != w.said { // once for all rounds that say the same
		w.said = said.String()
		io.WriteString(w.stderr, w.said)
	}
	if err != nil {
		if len(w.outputs) > 0 {
			_ = w.unjudged(err, v, w.stdout)
			fmt.Fprintln(w.stderr, "forbear lint: waiting for changes")
		}
		return nil
	}
	for _, dir := range v.moduleDirs() {
		if !slices.Contains(w.dirs, dir) {
			w.dirs = append(w.dirs, dir)
		}
	}
	if len(w.outputs) > 0 {
		err = w.render(rep, w.stdout)
		fmt.Fprintln(w.stderr, "forbear lint: waiting for changes")
		return err
	}
	return w.show(rep, v)
}

// show prints the findings that are new, those that are gone, and the totals
// when they have changed.
// Findings of a package that cannot be judged just now are neither.
func (w *watcher) show(rep *report.Report, v *verdict) error {
	now := map[string]report.Finding{}
	for _, f := range rep.Counting() {
		now[f.Fingerprint()] = f
	}
	missing := v.allUnjudged()
	var lost []report.Finding
	for id, f := range w.known {
		if _, ok := now[id]; ok {
			continue
		}
		if slices.Contains(missing, f.Package) {
			now[id] = f
		} else {
			lost = append(lost, f)
		}
	}
	report.Sort(lost)
	var b bytes.Buffer
	for _, f := range lost {
		fmt.Fprintf(&b, "- %s\n", report.Headline(&f))
	}
	one := *rep
	one.Problems = nil
	for _, f := range rep.Counting() {
		if _, ok := w.known[f.Fingerprint()]; !ok {
			b.WriteString("+ ")
			one.Findings = []report.Finding{f}
			if err := one.Text(&b); err != nil {
				return err
			}
		}
	}
	w.known = now
	if status := w.totals(v); status != w.status || b.Len() > 0 {
		w.status = status
		fmt.Fprintln(&b, status)
	}
	_, err := w.stdout.Write(b.Bytes())
	return err
}

// totals is the line behind what has changed.
func (w *watcher) totals(v *verdict) string {
	fail := 0
	for _, f := range w.known {
		if f.Severity == report.Error {
			fail++
		}
	}
	text := fmt.Sprintf("watching %s: %s, %d fail", plural(len(v.roots), "package"), plural(len(w.known), "finding"), fail)
	if n := len(v.allUnjudged()); n > 0 {
		text += fmt.Sprintf("; %s not judged", plural(n, "package"))
	}
	return text
}

// change waits until the files differ from what they were, and then until two
// looks in a row have seen the same, as an editor may write several. It is false
// when the context ends.
// The time between two looks grows with what a look costs.
func (w *watcher) change(ctx context.Context, before map[string]stamp) bool {
	changed := false
	for {
		start := time.Now()
		now := snapshot(w.watched(w.dirs))
		pause := max(w.poll, 10*time.Since(start))
		switch same := equal(before, now); {
		case changed && same:
			return ctx.Err() == nil
		case !same:
			changed, before, pause = true, now, w.poll/5
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}
