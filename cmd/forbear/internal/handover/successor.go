//go:build unix

package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
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
	// stays says that this process stays, for those who wait for it. The successor then
	// leads a process group of its own, and those after it belong to that.
	stays bool
	// serving is the number of the process that serves: the successor, or one after it.
	serving atomic.Int64
}

// Start starts the program again with the same arguments, passes it the sockets, and
// returns when it is ready. stay says that this process is to stay until its
// successors have ended. After an error, and when ctx ends before the new process is
// ready, no new process is left.
func Start(ctx context.Context, own *Predecessor, sockets []*os.File, names []string, stay bool) (*Successor, error) {
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
	files := append(slices.Clip(sockets), w)
	if own.Supervised() {
		files = append(files, own.first)
	} else if next.stays && adopts() { // otherwise each process stays for the next
		heard, first, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		defer func() { _ = first.Close() }()
		go next.hear(heard)
		files = append(files, first)
	}
	text, err := json.Marshal(note{Sockets: names, First: len(files) > len(sockets)+1})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, os.Args[1:]...) //nolint:gosec // itself
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	// A terminal sends Ctrl-C to its group: this process passes it on, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: next.stays}
	err = cmd.Start()
	_ = w.Close() // the successor's end is the only one: its death ends the read
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	next.cmd = cmd
	next.serving.Store(int64(cmd.Process.Pid)) // before any of its successors says otherwise
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	kept := context.AfterFunc(limited, func() { _ = cmd.Process.Kill() })
	err = await(r)
	if !kept() && err == nil { // killed just as it became ready
		err = limited.Err()
	}
	if err != nil {
		defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
		ended := cmd.Wait()
		if limited.Err() != nil {
			err = fmt.Errorf("it was not ready in time, or this process was told to end: %w", limited.Err())
		}
		return nil, fmt.Errorf("the new process (%v): %w", ended, err)
	}
	if own.Supervised() {
		_, _ = fmt.Fprintln(own.first, cmd.Process.Pid)
	}
	return next, nil
}

// hear reads who serves, until the last successor has ended.
func (n *Successor) hear(from io.ReadCloser) {
	defer func() { _ = from.Close() }()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if pid, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			n.serving.Store(pid)
		}
	}
}

// PID returns the successor's number.
func (n *Successor) PID() int { return n.cmd.Process.Pid }

// Stays reports whether this process awaits its successors: see [Successor.Wait].
func (n *Successor) Stays() bool { return n != nil && n.stays }

// Pass passes a signal on to the process that serves. An end is for all that this process
// stays for, those that drain among them. Any other signal would kill a process that is only
// starting, and has no handler yet.
func (n *Successor) Pass(sig os.Signal) {
	pid := int(n.serving.Load())
	if n.stays && (sig == syscall.SIGTERM || sig == os.Interrupt) {
		pid = -n.cmd.Process.Pid
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
