package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
)

// firstPassed is the descriptor of the first socket that is passed, as
// sd_listen_fds(3) has it.
const firstPassed = 3

// Passed returns the sockets that the environment has passed to this process: those that
// names lists, which another forbear has passed on by [Sockets.Files], or those of systemd
// (LISTEN_FDS, see sd_listen_fds(3)). It unsets the variables of systemd, so that no other
// process takes them for its own. It is called once, before anything else is opened.
func Passed(names []string) (*Sockets, error) {
	var files []*os.File
	prefix := ""
	for i, name := range names {
		files = append(files, os.NewFile(uintptr(firstPassed+i), name))
	}
	if len(names) == 0 {
		files, prefix = activation.Files(true), systemdPrefix
	}
	s := &Sockets{}
	for _, f := range files {
		p, err := adopt(f, prefix+f.Name())
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.passed = append(s.passed, p)
	}
	return s, nil
}

// adopt takes over a socket that was passed.
func adopt(f *os.File, name string) (*socket, error) {
	if !isListening(f.Fd()) {
		return nil, fmt.Errorf("socket %s does not listen: want ListenStream and Accept=no in the unit", name)
	}
	l, err := net.FileListener(f) // a copy, which no other process inherits
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("socket %s: %w", name, err)
	}
	p := &socket{name: name, Listener: l}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		// systemd removes the files of its own sockets.
		if path := l.Addr().String(); !strings.HasPrefix(name, systemdPrefix) && path != "" && path[0] != '@' {
			p.file, _ = os.Lstat(path)
		}
	}
	return p, nil
}
