package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock locks a file until it is closed, and waits while another process has it.
func lock(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, f.Close())
		}
		if !said {
			fmt.Fprintln(os.Stderr, "waiting for another release of this version, which has", name)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(time.Second):
		}
	}
}
