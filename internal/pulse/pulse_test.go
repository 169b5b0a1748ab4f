package pulse

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

// A part that fails, or does not come to an end, is not healthy within some of its
// intervals, and healthy with the first success.
func TestPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, every := range []time.Duration{0, time.Second, 30 * time.Second, 10 * time.Minute} {
			p := &Part{Every: every}
			healthy := func(when string, want bool) {
				t.Helper()
				if s := p.State(); s.Healthy != want || (s.Error == "") != want {
					t.Errorf("every %v, %s: %+v", every, when, s)
				}
			}
			do := func(err error) { _ = p.Do(func() error { return err }) }
			pause, limit := max(every, time.Second), max(every, patience)
			healthy("at the beginning", true)
			do(nil)
			do(errDown)
			healthy("after one failure", true)
			began := time.Now()
			for time.Since(began) < 3*limit {
				time.Sleep(pause)
				do(errDown)
				if time.Since(began) >= limit {
					healthy("while it fails", false)
					time.Sleep(pause / 2)
					healthy("between two failures", false)
				}
			}
			if s := p.State(); s.Cause != errDown || s.Failures < 3 || !strings.HasPrefix(s.Error, "failing since 2") || !strings.HasSuffix(s.Error, ": down") {
				t.Errorf("every %v: it says %+v", every, s)
			}
			do(nil)
			healthy("after a success", true)
			time.Sleep(10 * limit)
			healthy("when there is nothing to do", true)

			release := make(chan struct{})
			go func() { _ = p.Do(func() error { <-release; return nil }) }()
			time.Sleep(limit - time.Millisecond)
			healthy("while it takes long", true)
			time.Sleep(time.Millisecond)
			healthy("when it does not come to an end", false)
			close(release)
			synctest.Wait()
			healthy("when it has ended", true)

			do(errDown)
			time.Sleep(3 * limit)
			healthy("long after a failure that nothing followed", true)
			do(errDown)
			healthy("after the next one", true)
			_ = p.Do(func() error { healthy("while it is done again", true); return nil })
		}
	})
}

// Of several at a time one that hangs does not hide behind those that fail, and one that
// succeeds is one that works.
func TestPartSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := &Part{}, make(chan struct{})
		go func() { _ = p.Do(func() error { <-release; return nil }) }()
		for range 20 {
			time.Sleep(time.Second)
			_ = p.Do(func() error { return errDown })
		}
		if s := p.State(); s.Healthy || s.Failures != 20 {
			t.Errorf("it is %+v", s)
		}
		_ = p.Do(func() error { return nil })
		if s := p.State(); !s.Healthy {
			t.Errorf("it is %+v", s)
		}
		time.Sleep(patience)
		if s := p.State(); s.Healthy {
			t.Error("one that has not ended since is forgotten")
		}
		close(release)
		synctest.Wait()
	})
}
