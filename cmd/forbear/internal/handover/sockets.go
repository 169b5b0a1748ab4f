package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// DefaultMode is that of a unix socket's file: its owner and group may connect. A
// caller of the gateway speaks with the gateway's credentials.
const DefaultMode os.FileMode = 0o660

// The prefixes of addresses other than a host and a port.
const (
	unixPrefix    = "unix:"
	systemdPrefix = "systemd:"
)

// Sockets are the listening sockets of a process. The zero value opens each that it
// is asked for; [Passed] returns one that has some already. It is safe for concurrent
// use.
type Sockets struct {
	// Mode is the mode of the files of unix sockets. Zero means DefaultMode. It is
	// set before the first use.
	Mode os.FileMode

	mu     sync.Mutex
	passed []*socket // not asked for yet
	open   []*socket
}

// socket is one listening socket.
type socket struct {
	// name is what it was asked for as: a purpose and an address, such as "gateway
	// :8080", or "systemd:web". The next process asks for it by the same name.
	name    string
	purpose string
	net.Listener
	file os.FileInfo // of a unix socket that this process is to remove; else nil
	mine bool        // opened here, and so removed whatever happens
}

// Listen returns the sockets of addresses for a purpose, such as "gateway": those
// that were passed, and otherwise new ones. "systemd:" stands for all sockets that
// systemd passed, "systemd:NAME" for those of a name. After an error none of them is
// open.
func (s *Sockets) Listen(ctx context.Context, purpose string, addresses ...string) ([]net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*socket
	for _, a := range addresses {
		list, err := s.listen(ctx, purpose, a)
		found = append(found, list...)
		if err != nil {
			for _, f := range found {
				_ = f.close(f.mine)
			}
			return nil, err
		}
	}
	s.open = append(s.open, found...)
	listeners := make([]net.Listener, len(found))
	for i, f := range found {
		f.purpose = purpose
		listeners[i] = f.Listener
	}
	return listeners, nil
}

// One returns the socket of one address. It is [Sockets.Listen] for a purpose that has
// a single address.
func (s *Sockets) One(ctx context.Context, purpose, address string) (net.Listener, error) {
	list, err := s.Listen(ctx, purpose, address)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// listen takes or opens what one address stands for. The caller holds mu.
func (s *Sockets) listen(ctx context.Context, purpose, address string) ([]*socket, error) {
	if strings.HasPrefix(address, systemdPrefix) {
		list := s.take(func(name string) bool { return standsFor(address, name) })
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: systemd passed no such socket (LISTEN_FDS, LISTEN_FDNAMES): add it to the socket unit", address)
		}
		return list, nil
	}
	name := purpose + " " + address
	if list := s.take(func(n string) bool { return n == name }); len(list) > 0 {
		return list, nil
	}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		f, err := listenUnix(ctx, path, s.Mode)
		if err != nil {
			return nil, err
		}
		f.name, f.mine = name, true
		return []*socket{f}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return []*socket{{name: name, Listener: l, mine: true}}, nil
}

// standsFor reports whether an address of systemd's means the socket of a name.
func standsFor(address, name string) bool {
	return name == address || address == systemdPrefix && strings.HasPrefix(name, systemdPrefix)
}

// take removes those of a name from what was passed, and returns them.
func (s *Sockets) take(named func(string) bool) (list []*socket) {
	s.passed = slices.DeleteFunc(s.passed, func(p *socket) bool {
		if named(p.name) {
			list = append(list, p)
			return true
		}
		return false
	})
	return list
}

// Addresses returns what an address stands for: those of the sockets that systemd has
// passed and no one has asked for yet, or the address itself. A unix socket's has its
// prefix.
func (s *Sockets) Addresses(address string) (list []string) {
	if !strings.HasPrefix(address, systemdPrefix) {
		return []string{address}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.passed {
		if !standsFor(address, p.name) {
			continue
		}
		at := p.Addr().String()
		if p.Addr().Network() == "unix" {
			at = unixPrefix + at
		}
		list = append(list, at)
	}
	return list
}

// Commit says that the process is ready, and owns what was passed to it from now on.
// What it did not ask for is closed, and returned by name.
func (s *Sockets) Commit() (unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.passed {
		unused = append(unused, p.name)
		_ = p.close(true)
	}
	s.passed = nil
	for _, o := range s.open {
		o.mine = true
	}
	return unused
}

// Files returns copies of the open sockets, to pass on, and their names. The caller
// closes the copies.
func (s *Sockets) Files() (files []*os.File, names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		l, ok := o.Listener.(syscall.Conn)
		if !ok {
			continue
		}
		f, err := duplicate(l, o.name)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, nil, fmt.Errorf("passing on %s: %w", o.name, err)
		}
		files, names = append(files, f), append(names, o.name)
	}
	return files, names, nil
}

// Given says that another process has taken the sockets over, and owns the files of unix
// sockets now: Close leaves them alone.
func (s *Sockets) Given() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		o.mine = false
	}
}

// Close closes the sockets of the purposes, or all where there are none, and removes
// the files of those that this process has opened or was given. It may be called more
// than once.
func (s *Sockets) Close(purposes ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	over := func(o *socket) bool {
		if len(purposes) > 0 && !slices.Contains(purposes, o.purpose) {
			return false
		}
		if err := o.close(o.mine); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		return true
	}
	s.open, s.passed = slices.DeleteFunc(s.open, over), slices.DeleteFunc(s.passed, over)
	return errors.Join(errs...)
}

// close closes the socket. It removes the file first, so that no caller finds a file that no
// process listens on.
func (s *socket) close(remove bool) error {
	if remove && s.file != nil {
		removeOwn(s.Addr().String(), s.file)
	}
	return s.Listener.Close()
}
