//go:build !unix

package handover

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// Signals are empty: sockets cannot be passed on here, and so nothing asks for a handover.
var Signals []os.Signal

// Successor is never made here.
type Successor struct{}

func Start(context.Context, *Predecessor, []*os.File, []string, bool) (*Successor, error) {
	return nil, errors.ErrUnsupported
}

func (*Successor) PID() int       { return 0 }
func (*Successor) Stays() bool    { return false }
func (*Successor) Pass(os.Signal) {}
func (*Successor) Wait() int      { return 0 }

func closeOnExec(*os.File)     {}
func isListening(uintptr) bool { return false }

func closeToOthers(string, string, syscall.RawConn) error { return nil }

func duplicate(syscall.Conn, string) (*os.File, error) { return nil, errors.ErrUnsupported }
