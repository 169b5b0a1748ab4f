//go:build linux

package tcpstate_test

import (
	"io"
	"net"
	"testing"

	"github.com/forbear-go/forbear/internal/tcpstate"
)

// What the other end does not read stays in the queue, and leaves it when it is read.
func TestQueued(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if n, ok := tcpstate.Queued(client); !ok || n != 0 {
		t.Fatalf("before a write: %d, %v", n, ok)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = client.Write(make([]byte, 8<<20))
	}()
	for { // until nothing more fits
		if n, ok := tcpstate.Queued(client); !ok {
			t.Fatal("the system does not say")
		} else if n > 0 {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, server) }()
	<-written
	for {
		if n, _ := tcpstate.Queued(client); n == 0 {
			return
		}
	}
}

// A connection in memory has no queue that could be asked.
func TestNoQueue(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if n, ok := tcpstate.Queued(a); ok {
		t.Errorf("a pipe has a queue of %d", n)
	}
}
