package httpretry

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReleaseLeavesNoHole: a reader that is behind what an earlier one got gets that, too,
// when there is no other attempt and its upload goes on.
func TestReleaseLeavesNoHole(t *testing.T) {
	const text = "abcdefghij"
	r := newReplay(io.NopCloser(io.MultiReader(strings.NewReader(text))), 4, nil)
	first := r.reader(nil, nil)
	_, _ = io.ReadFull(first, make([]byte, 3))
	if !r.hold() {
		t.Fatal("what is kept is not enough")
	}
	r.next()
	second := r.reader(nil, nil)
	_, _ = first.Read(make([]byte, 6)) // under way when its attempt ended: beyond the limit
	got := make([]byte, 2)
	_, _ = io.ReadFull(second, got)
	if !r.hold() {
		t.Fatal("the beginning was given up")
	}
	r.release()
	rest, err := io.ReadAll(second)
	if string(got)+string(rest) != text || err != nil {
		t.Errorf("got %q, %v, want %q", string(got)+string(rest), err, text)
	}
}

// net/http closes a body that it has not read when the connection it chose is lost, and
// reads it after all on the next one.
func TestClosedBeforeItWasRead(t *testing.T) {
	source := &closing{Reader: strings.NewReader("payload")}
	r := newReplay(source, 1<<10, nil)
	for _, body := range []io.ReadCloser{r.reader(nil, nil), &upload{a: &attempt{ctx: t.Context()}, source: r.reader(nil, nil)}} {
		_ = body.Close()
		if got, err := io.ReadAll(body); err != nil || string(got) != "payload" {
			t.Errorf("read %q, %v", got, err)
		}
		_ = body.Close()
		if n, err := body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Error("read again when it was closed for good")
		}
	}
	late := r.reader(nil, nil)
	_ = late.Close()
	r.next()
	if _, err := late.Read(make([]byte, 1)); err != errBodyClosed {
		t.Errorf("a reader of the past: %v", err)
	}
	if r.finish(); source.closed != 1 {
		t.Errorf("the source was closed %d times", source.closed)
	}
}

// A body whose stream ended while its first Read began is closed with its attempt, and what
// is kept of it is given back: over HTTP/2 net/http closes it only before that Read.
func TestClosedAsItWasBegun(t *testing.T) {
	for _, rewound := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &closing{Reader: strings.NewReader(strings.Repeat("x", 400<<10))}
			memory := NewBodyMemory(1 << 20)
			r := newReplay(source, 1<<20, memory)
			first := r.reader(nil, nil)
			_, _ = io.ReadFull(first, make([]byte, 300<<10))
			_ = first.Close()
			r.next()
			ctx, end := context.WithCancel(t.Context())
			u := &upload{a: &attempt{ctx: ctx}, source: r.reader(nil, nil), again: r.again(nil, nil)}
			if rewound {
				_, _ = u.Read(make([]byte, 1))
				_ = u.Close()
				if _, err := u.rewound(); err != nil {
					t.Fatal(err)
				}
			}
			_ = u.Close()
			if _, err := u.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if r.finish(); source.closed != 0 || memory.Used() == 0 {
				t.Errorf("rewound %v: closed %d times, %d bytes are taken while its attempt goes on", rewound, source.closed, memory.Used())
			}
			end()
			if synctest.Wait(); source.closed != 1 || memory.Used() != 0 {
				t.Errorf("rewound %v: closed %d times, %d bytes stay taken", rewound, source.closed, memory.Used())
			}
		})
	}
}

type closing struct {
	io.Reader

	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// TestFinishKeepsWhatIsUnread: after the last attempt the beginning is kept for a reader
// that is behind it, until that has read it or is closed.
func TestFinishKeepsWhatIsUnread(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20<<10)
	for _, closes := range []bool{false, true} {
		memory := NewBodyMemory(1 << 20)
		r := newReplay(io.NopCloser(io.MultiReader(strings.NewReader(text[:200<<10]), strings.NewReader(text[200<<10:]))), 1<<20, memory)
		first := r.reader(nil, nil)
		_, _ = io.ReadFull(first, make([]byte, 200<<10))
		if !r.hold() {
			t.Fatal("what is kept is not enough")
		}
		r.next()
		second := r.reader(nil, nil)
		_ = first.Close()
		r.finish()
		if memory.Used() == 0 {
			t.Error("what the second reader has not read is given up")
		}
		if closes {
			_ = second.Close()
		} else {
			got := make([]byte, 201<<10)
			if _, err := io.ReadFull(second, got); err != nil || string(got) != text[:201<<10] {
				t.Errorf("the second reader got something else, or %v", err)
			}
		}
		if used := memory.Used(); used != 0 {
			t.Errorf("closes %v: %d bytes stay taken", closes, used)
		}
		if rest, err := io.ReadAll(second); !closes && (err != nil || string(rest) != text[201<<10:]) {
			t.Errorf("then it got %d bytes, or others, and %v", len(rest), err)
		}
	}
}

// TestFinishKeepsWhatAnEarlierReadBrings: over HTTP/2 the Read of an attempt that failed goes
// on, and what it brings is for the latest reader, which has read all that is kept by then.
func TestFinishKeepsWhatAnEarlierReadBrings(t *testing.T) {
	source, sender := io.Pipe()
	r := newReplay(source, 1<<10, NewBodyMemory(1<<20))
	apart := func() bool { return true }
	first := r.reader(nil, apart)
	ended := make(chan error, 1)
	go func() {
		_, err := first.Read(make([]byte, 10))
		ended <- err
	}()
	comes(t, r, func() bool { return r.readBy != nil })
	_ = first.Close()
	if err := <-ended; err != errBodyClosed {
		t.Fatal(err)
	}
	r.hold()
	r.next()
	second := r.reader(nil, apart)
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 10)
		n, _ := second.Read(b)
		got <- string(b[:n])
	}()
	comes(t, r, func() bool { return r.caughtUp })
	r.finish()
	go func() { _, _ = io.WriteString(sender, "lost?") }()
	select {
	case text := <-got:
		if text != "lost?" {
			t.Errorf("the second reader got %q", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("what the first Read brought is lost")
	}
	_ = sender.Close()
}

// comes waits for a state of r.
func comes(t *testing.T, r *replay, f func() bool) {
	t.Helper()
	for range 10_000 {
		r.mu.Lock()
		ok := f()
		r.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the state does not come")
}
