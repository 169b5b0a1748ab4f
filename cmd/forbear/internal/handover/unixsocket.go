package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// listenUnix opens a unix socket at path, in the file system or, where the path
// begins with "@", apart from it (unix(7)). The file of a process that is dead is
// replaced; that of a process that listens is not.
func listenUnix(ctx context.Context, path string, mode os.FileMode) (*socket, error) {
	abstract := path != "" && path[0] == '@'
	lc := net.ListenConfig{Control: closeToOthers}
	l, err := lc.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && !abstract {
		if err := removeDead(ctx, path); err != nil {
			return nil, err
		}
		l, err = lc.Listen(ctx, "unix", path)
	}
	if errors.Is(err, os.ErrNotExist) {
		// The file is about to be made: what is not there is its folder.
		return nil, fmt.Errorf("unix:%s: the folder %s does not exist: create it first: %w", path, filepath.Dir(path), err)
	}
	if err != nil || abstract {
		return &socket{Listener: l}, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it may have been passed on
	}
	if err := os.Chmod(path, cmp.Or(mode, DefaultMode)); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{Listener: l, file: info}, nil
}

// removeDead removes the file of a unix socket that no process listens on.
func removeDead(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("unix:%s: a file of that name exists and is not a socket: remove it, or choose another path", path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("unix:%s: another process listens on it: stop it, or choose another path: %w", path, syscall.EADDRINUSE)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("unix:%s: cannot find out whether another process listens on it: %w", path, err)
	}
	return os.Remove(path)
}

// removeOwn removes the file of a unix socket, unless another file has its name by
// now: that of the process that came after.
func removeOwn(path string, own os.FileInfo) {
	if now, err := os.Lstat(path); err == nil && os.SameFile(now, own) {
		_ = os.Remove(path)
	}
}
