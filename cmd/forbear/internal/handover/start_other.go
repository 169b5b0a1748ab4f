//go:build !unix

package handover

import (
	"context"
	"errors"
	"os"
)

// Signals are those that ask for a handover: none where sockets cannot be passed on.
var Signals []os.Signal

// Successor is the process that has taken this one's place.
type Successor struct{}

// Start says that it cannot be done here.
func Start(context.Context, *Predecessor, []*os.File, []string, bool) (*Successor, error) {
	return nil, errors.ErrUnsupported
}

// PID returns the successor's number.
func (*Successor) PID() int { return 0 }

// Stays reports whether this process awaits its successors.
func (*Successor) Stays() bool { return false }

// Pass passes a signal on to the successor.
func (*Successor) Pass(os.Signal) {}

// Wait waits until the successor has ended.
func (*Successor) Wait() int { return 0 }

func join(int) error { return nil }

func notInherited(*os.File) {}
