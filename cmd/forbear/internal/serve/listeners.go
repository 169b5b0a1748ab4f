package serve

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/handover"
	"github.com/forbear-go/forbear/internal/loopback"
)

// forGateway is the purpose of the sockets that callers connect to.
const forGateway = "gateway"

// addresses are where the gateway listens, by the flags.
type addresses struct {
	list []string
	mode os.FileMode // of unix sockets
}

func (a *addresses) register(f *flag.FlagSet) {
	f.Func("listen", "the `address`: HOST:PORT, unix:PATH, systemd: or systemd:NAME; may be repeated (default: systemd's sockets, the policy file's, or "+defaultListen+")",
		func(v string) error {
			if !strings.Contains(v, ":") {
				return errors.New("want HOST:PORT, such as 127.0.0.1:8080, or unix:PATH")
			}
			a.list = append(a.list, v)
			return nil
		})
	f.Func("socket-mode", fmt.Sprintf("the octal `mode` of unix sockets (default %#o: owner and group can connect)", handover.DefaultMode),
		func(v string) error {
			n, err := strconv.ParseUint(v, 8, 32)
			if err != nil || n == 0 || n > 0o777 {
				return errors.New("want a mode such as 0660")
			}
			a.mode = os.FileMode(n)
			return nil
		})
}

// inherit takes what the environment passes: the sockets of systemd, or those of a
// process that this one replaces.
func (s *server) inherit() (err error) {
	if s.before, err = handover.Receive(); err != nil {
		return err
	}
	if s.sockets, err = handover.Passed(s.before.Names()); err != nil {
		return err
	}
	s.sockets.Mode = s.listen.mode
	return nil
}

// listeners opens the gateway's listeners, or takes them from the environment. A flag
// comes before sockets that were passed, and those before the policy file: a .socket unit
// is written on purpose.
func (s *server) listeners(ctx context.Context) ([]net.Listener, error) {
	return s.sockets.Listen(ctx, forGateway, s.wanted()...)
}

// wanted returns the addresses that the gateway is to listen on.
func (s *server) wanted() []string {
	switch {
	case len(s.listen.list) > 0:
		return s.listen.list
	case len(s.sockets.Addresses("systemd:")) > 0:
		return []string{"systemd:"}
	case len(s.file.Gateway.Listen) > 0:
		return s.file.Gateway.Listen
	}
	return []string{defaultListen}
}

// outermost returns the first of the wanted addresses that other machines could reach,
// or else the first: what the gateway trusts depends on it before a socket is open.
func (s *server) outermost() string {
	var list []string
	for _, a := range s.wanted() {
		list = append(list, s.sockets.Addresses(a)...)
	}
	if len(list) == 0 {
		return s.wanted()[0] // a socket that systemd did not pass, as listeners will say
	}
	for _, a := range list {
		if !strings.HasPrefix(a, "unix:") && !loopback.Host(a) {
			return a
		}
	}
	return list[0]
}

// committed closes the sockets that were passed and not asked for, when all others
// are served.
func (s *server) committed() {
	for _, name := range s.sockets.Commit() {
		s.log.Warn("closed an inherited socket that is not in use", slog.String("socket", name))
	}
}

// baseOf returns the address that callers reach a listener by.
func (s *server) baseOf(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return s.scheme() + "://" + l.Addr().String()
}

// widest returns the address of the first listener that other machines can reach, or
// else that of any: what it is may depend on it. A unix socket is reached from this
// machine alone.
func widest(listeners []net.Listener) string {
	for _, l := range listeners {
		if l.Addr().Network() != "unix" && !loopback.Host(l.Addr().String()) {
			return l.Addr().String()
		}
	}
	return "localhost"
}

// firstTCP returns the address of the first listener that has a port, or nil.
func firstTCP(listeners []net.Listener) net.Addr {
	for _, l := range listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			return a
		}
	}
	return nil
}

// mainOf returns the base address of the gateway for its greeting: one that curl takes
// as it is, where there is one.
func (s *server) mainOf(listeners []net.Listener) string {
	base := ""
	if a := firstTCP(listeners); a != nil {
		base = s.scheme() + "://" + a.String()
	}
	return cmp.Or(base, s.baseOf(listeners[0]))
}
