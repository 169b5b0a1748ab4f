// Package systemd says to systemd, or to whatever else set NOTIFY_SOCKET, how the
// process fares: sd_notify(3), without its library.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// Notifier sends states to the socket that the environment names. The zero value and
// nil send nothing. It is safe for concurrent use.
type Notifier struct {
	mu   sync.Mutex
	addr *net.UnixAddr
}

// New returns the Notifier of the environment. The variable is left as it is: the
// process that takes this one's place needs it too.
func New() *Notifier {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" || name[0] != '/' && name[0] != '@' {
		return &Notifier{} // none, or of a kind (vsock) that is not for us
	}
	return &Notifier{addr: &net.UnixAddr{Name: name, Net: "unixgram"}}
}

// On reports whether any one listens.
func (n *Notifier) On() bool { return n != nil && n.addr != nil }

// Ready says that the process serves, after its start or a reload.
func (n *Notifier) Ready() error { return n.send("READY=1", "STATUS=serving") }

// Reloading says that a reload has begun, which Ready ends.
func (n *Notifier) Reloading() error {
	return n.send("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic()), "STATUS=reading the policy file")
}

// Stopping says that the end has begun.
func (n *Notifier) Stopping() error { return n.send("STOPPING=1", "STATUS=draining") }

// Main says that another process has taken this one's place. It is sent by the
// process that systemd knows, since it may not believe others.
func (n *Notifier) Main(pid int) error { return n.send(fmt.Sprintf("MAINPID=%d", pid), "READY=1") }

// send sends one datagram, as all its lines belong together.
func (n *Notifier) send(lines ...string) error {
	if !n.On() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	conn, err := net.DialUnix("unixgram", nil, n.addr)
	if err != nil {
		return fmt.Errorf("notifying systemd: %w", err)
	}
	_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	if e := conn.Close(); err == nil {
		err = e
	}
	return err
}
