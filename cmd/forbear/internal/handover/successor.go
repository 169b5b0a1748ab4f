//go:build unix

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Signals are those that ask for a handover, as nginx has it.
var Signals = []os.Signal{syscall.SIGUSR2}

// Timeout is how long a new process may take until it serves. The update of a large
// database is part of it.
const Timeout = 2 * time.Minute

// patience is how long a new process that has given up may take to end.
const patience = 5 * time.Second

// Successor is the process that has taken this one's place.
type Successor struct {
	cmd *exec.Cmd
	// stays says that this process stays, for those who wait for it. The successor
	// then leads a process group of its own, to which signals are passed on.
	stays bool
}

// Start starts the program anew with the same arguments, passes it the sockets, and
// returns when it is ready. stay says that this process is to stay until its
// successors have ended. After an error, and when ctx ends before the new process is
// ready, there is no other process than before.
func Start(ctx context.Context, own *Predecessor, sockets []*os.File, names []string, stay bool) (*Successor, error) {
	for try := 1; ; try++ {
		next, err := start(ctx, own, sockets, names, stay)
		if !errors.Is(err, errStruck) || try == tries || ctx.Err() != nil {
			return next, err
		}
	}
}

// A process that is started belongs to the group of this one until it has left that,
// which is the first that it does. A signal that is passed on to the group in that
// moment ends it, and it is started again.
var errStruck = errors.New("a signal for those who serve has ended it")

const tries = 5

// struck reports whether a process has ended of such a signal.
func struck(ended error) bool {
	exit, ok := errors.AsType[*exec.ExitError](ended)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGHUP || status.Signal() == syscall.SIGUSR2)
}

// start is one try of Start.
func start(ctx context.Context, own *Predecessor, sockets []*os.File, names []string, stay bool) (*Successor, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	next := &Successor{stays: stay && !own.Supervised()}
	// Where a process cannot adopt those that its children leave behind, each stays
	// for the next.
	supervised := own.Supervised() || next.stays && adopts()
	n := note{Sockets: names, Supervised: supervised}
	if own.Supervised() {
		n.Group = syscall.Getpgrp()
	}
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, os.Args[1:]...) //nolint:gosec // itself
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = append(sockets[:len(sockets):len(sockets)], w)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	// A process that is still starting would die of a signal that is passed on to those
	// who serve: it is not of their group yet.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: next.stays || n.Group != 0}
	err = cmd.Start()
	_ = w.Close() // the successor's end is the only one: its death ends the read
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	next.cmd = cmd
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	kept := context.AfterFunc(limited, func() { _ = cmd.Process.Kill() })
	err = await(r)
	if !kept() && err == nil { // killed in the moment when it was ready
		err = limited.Err()
	}
	if err != nil {
		defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
		ended := cmd.Wait()
		if limited.Err() != nil {
			err = fmt.Errorf("it was not ready in time, or this process was asked to end: %w", limited.Err())
		} else if struck(ended) {
			err = errStruck
		}
		return nil, fmt.Errorf("the new process (%v): %w", ended, err)
	}
	return next, nil
}

// PID returns the successor's number.
func (n *Successor) PID() int { return n.cmd.Process.Pid }

// Stays reports whether this process awaits its successors: see [Successor.Wait].
func (n *Successor) Stays() bool { return n != nil && n.stays }

// Pass passes a signal on to the successor, and to those after it where this process
// stays for them.
func (n *Successor) Pass(sig os.Signal) {
	pid := n.cmd.Process.Pid
	if n.stays {
		pid = -pid // its group
	}
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(pid, s)
	}
}

// Wait waits until the successor and all after it have ended, and returns how the
// last one did: its exit code, or 128 and its signal.
func (n *Successor) Wait() (code int) {
	for {
		var s syscall.WaitStatus
		_, err := syscall.Wait4(-1, &s, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return code
		case s.Signaled():
			code = 128 + int(s.Signal())
		default:
			code = s.ExitStatus()
		}
	}
}

// join makes this process one of a group; 0 is none.
func join(group int) error {
	if group == 0 {
		return nil
	}
	return os.NewSyscallError("setpgid", syscall.Setpgid(0, group))
}
