package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// Resolver finds the addresses of a host. [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP is asked for the network "ip": addresses of both families.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// How often a name is looked up. Go's resolver does not say for how long what it
// found may be kept, so the TTL of the records cannot be followed.
const (
	lookupEvery = 30 * time.Second // at most, while requests come
	lookupLate  = time.Minute      // so old, addresses are not used before a look
	lookupTime  = 5 * time.Second  // for one look
)

// lookup keeps the addresses of a name fresh. It asks while requests come, beside
// them, and so needs no goroutine that someone has to end: each look ends in
// [lookupTime]. It is safe for concurrent use.
type lookup struct {
	host, port string
	resolver   Resolver
	found      func(addresses []string)
	log        *slog.Logger

	mu     sync.Mutex
	known  bool      // there are addresses
	looked time.Time // when the last look ended
	next   time.Time // from when on there is another
	failed bool      // the last look did, and the log says so
	err    error     // of the last look
	done   chan struct{}
}

func newLookup(c Config, found func([]string)) *lookup {
	host, port, _ := net.SplitHostPort(c.DNS)
	l := &lookup{host: host, port: port, resolver: c.Resolver, found: found, log: c.Logger}
	if l.resolver == nil {
		l.resolver = net.DefaultResolver
	}
	return l
}

// refresh returns when there are addresses to go to. It waits for a look only where
// there are none yet, or where those that there are have not been asked for in a
// long time. Its error is that of a name that was never found.
func (l *lookup) refresh(ctx context.Context) error {
	l.mu.Lock()
	now := time.Now()
	if l.known && now.Before(l.next) {
		l.mu.Unlock()
		return nil
	}
	if l.done == nil {
		l.done = make(chan struct{})
		go l.look(l.done)
	}
	done, use := l.done, l.known && now.Sub(l.looked) < lookupLate
	l.mu.Unlock()
	if use {
		return nil
	}
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return nil
	}
	return l.err
}

// look asks once. What fails leaves the addresses as they are: a name server that is
// away takes no dependency with it.
func (l *lookup) look(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	ips, err := l.resolver.LookupNetIP(ctx, "ip", l.host)
	if err == nil && len(ips) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: l.host, IsNotFound: true}
	}
	if err == nil {
		l.found(l.addresses(ips))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.looked = err, time.Now()
	l.next = l.looked.Add(lookupEvery - wait.Jitter(lookupEvery/3))
	l.done = nil
	if err == nil {
		l.known = true
	}
	if l.known && l.failed != (err != nil) {
		l.failed = err != nil
		l.say()
	}
	close(done)
}

// say logs that looks fail, once, and that they do no more.
func (l *lookup) say() {
	if l.err != nil {
		l.log.Warn("the endpoints cannot be looked up: the old ones stay in use", slog.String("host", l.host), slog.String("error", fmt.Sprint(l.err)))
		return
	}
	l.log.Info("the endpoints can be looked up again", slog.String("host", l.host))
}

// addresses returns the addresses in order, each once, without those of a family
// that this machine has no route for, unless that are all.
func (l *lookup) addresses(ips []netip.Addr) []string {
	for i, ip := range ips {
		ips[i] = ip.Unmap()
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	ips = slices.Compact(ips)
	if routed := slices.DeleteFunc(slices.Clone(ips), unroutable); len(routed) > 0 {
		ips = routed
	}
	found := make([]string, len(ips))
	for i, ip := range ips {
		found[i] = net.JoinHostPort(ip.String(), l.port)
	}
	return found
}

// unroutable asks the system by connecting a UDP socket, which sends nothing.
func unroutable(ip netip.Addr) bool {
	c, err := net.Dial("udp", net.JoinHostPort(ip.String(), strconv.Itoa(9)))
	if err != nil {
		return true
	}
	_ = c.Close()
	return false
}
