package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstPassed is the descriptor of the first socket that is passed, as
// sd_listen_fds(3) has it.
const firstPassed = 3

// maxPassed bounds how many sockets the environment may pass. A number beyond it is a
// mistake, and would close what is not meant.
const maxPassed = 256

// Passed returns the sockets that the environment has passed to this process: those
// of systemd (LISTEN_FDS, see sd_listen_fds(3)), or those that names lists, which
// another forbear has passed on by [Sockets.Files]. The variables of systemd are
// unset, so that no other process takes them for its own. It is called once, before
// anything else is opened.
func Passed(names []string) (*Sockets, error) {
	fromSystemd, err := systemdNames(os.Getpid())
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	if len(names) == 0 {
		names = fromSystemd
	}
	if err != nil {
		return nil, err
	}
	s := &Sockets{}
	for i, name := range names {
		p, err := adopt(uintptr(firstPassed+i), name)
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.passed = append(s.passed, p)
	}
	return s, nil
}

// systemdNames returns the names of the sockets that systemd has passed to the
// process pid, none where it has not.
func systemdNames(pid int) ([]string, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, nil // for another process, or for none
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > maxPassed {
		return nil, fmt.Errorf("LISTEN_FDS is %q: want a number from 0 to %d", os.Getenv("LISTEN_FDS"), maxPassed)
	}
	names := make([]string, n)
	given := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for i := range names {
		names[i] = systemdPrefix + "unknown" // as sd_listen_fds_with_names(3) does
		if i < len(given) && given[i] != "" {
			names[i] = systemdPrefix + given[i]
		}
	}
	return names, nil
}

// adopt makes a socket of a descriptor that was passed.
func adopt(fd uintptr, name string) (*socket, error) {
	f := os.NewFile(fd, name)
	if f == nil {
		return nil, fmt.Errorf("socket %s: descriptor %d is not open", name, fd)
	}
	if !listening(fd) {
		return nil, fmt.Errorf("socket %s: descriptor %d does not listen: want a stream socket, with Accept=no", name, fd)
	}
	l, err := net.FileListener(f) // a copy, which no other process inherits
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("socket %s: descriptor %d: %w", name, fd, err)
	}
	p := &socket{name: name, Listener: l}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		// The files of systemd's sockets are systemd's to remove.
		if path := l.Addr().String(); !strings.HasPrefix(name, systemdPrefix) && path != "" && path[0] != '@' {
			p.file, _ = os.Lstat(path)
		}
	}
	return p, nil
}
