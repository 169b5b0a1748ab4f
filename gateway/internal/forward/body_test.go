package forward

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// deadlines is a connection that counts its deadlines. With wait, each waits for it.
type deadlines struct {
	http.ResponseWriter
	n       atomic.Int64
	entered chan struct{}
	wait    chan struct{}
}

func (d *deadlines) SetReadDeadline(time.Time) error {
	d.n.Add(1)
	if d.wait != nil {
		d.entered <- struct{}{}
		<-d.wait
	}
	return nil
}

func (d *deadlines) EnableFullDuplex() error { return nil }

// held is a body whose Read waits, and then ends.
type held struct{ entered, end chan struct{} }

func (h *held) Read([]byte) (int, error) {
	h.entered <- struct{}{}
	<-h.end
	return 0, io.EOF
}

func (h *held) Close() error { return nil }

// TestBodyLetsGo: a Read that ends when the call is over leaves the connection alone,
// which may be another request's by then. Over HTTP/2 it would end the process.
func TestBodyLetsGo(t *testing.T) {
	w, source := &deadlines{}, &held{make(chan struct{}), make(chan struct{})}
	var b body
	b.from(w, &http.Request{ProtoMajor: 1, Body: source}, time.Minute, 0)
	read := make(chan struct{})
	go func() { _, _ = b.Read(make([]byte, 1)); close(read) }()
	<-source.entered
	b.over()
	before := w.n.Load()
	close(source.end)
	<-read
	if _, err := b.Read(make([]byte, 1)); err != errClosed {
		t.Errorf("a Read afterwards: %v", err)
	}
	if n := w.n.Load() - before; n != 0 {
		t.Errorf("%d deadlines were set after the end of the call", n)
	}
}

// TestBodyIsNotOverUnderADeadline: the call is not over while a Read is setting one.
func TestBodyIsNotOverUnderADeadline(t *testing.T) {
	w := &deadlines{entered: make(chan struct{}, 9), wait: make(chan struct{})}
	var b body
	b.from(w, &http.Request{ProtoMajor: 1, Body: &held{make(chan struct{}, 1), make(chan struct{})}}, time.Minute, 0)
	go func() { _, _ = b.Read(make([]byte, 1)) }()
	<-w.entered
	over := make(chan struct{})
	go func() { b.over(); close(over) }()
	select {
	case <-over:
		t.Error("the call was over, and its connection still being touched")
	case <-time.After(100 * time.Millisecond):
	}
	close(w.wait)
	<-over
}

// TestWhoEndedARead: the server takes a Read that Close has ended for the caller's
// leaving, and a caller who has left has Close called, too.
func TestWhoEndedARead(t *testing.T) {
	for name, left := range map[string]bool{"the target failed": false, "the caller left": true} {
		t.Run(name, func(t *testing.T) {
			source := &held{make(chan struct{}), make(chan struct{})}
			var c Exchange
			c.body.from(&deadlines{}, &http.Request{ProtoMajor: 1, Body: source}, time.Minute, 0)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.body.watch(ctx)
			defer c.body.over()
			read := make(chan struct{})
			go func() { _, _ = c.body.Read(make([]byte, 1)); close(read) }()
			<-source.entered
			if left {
				cancel()
			}
			_ = c.body.Close()
			close(source.end)
			<-read
			if cancel(); c.Left() != left {
				t.Errorf("left: %t, want %t", c.Left(), left)
			}
		})
	}
}
