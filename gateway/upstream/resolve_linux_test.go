package upstream_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// nameServer is a DNS server on a UDP port of its own, which knows one name.
type nameServer struct {
	net.PacketConn
	mu        sync.Mutex
	addresses []netip.Addr
	fails     bool // responds SERVFAIL
	asked     int
}

func newNameServer(t *testing.T, addresses ...string) *nameServer {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &nameServer{PacketConn: c}
	s.set(addresses...)
	go s.serve()
	return s
}

func (s *nameServer) set(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = nil
	for _, a := range addresses {
		s.addresses = append(s.addresses, netip.MustParseAddr(a))
	}
}

// resolver asks this server and no other.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.LocalAddr().String())
	}}
}

func (s *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = s.WriteTo(s.respond(buf[:n]), from)
	}
}

// respond makes a response (RFC 1035 section 4) of a question: its header and its
// question section come back, followed by the records.
func (s *nameServer) respond(query []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	end := 12 + bytes.IndexByte(query[12:], 0) + 1 // of the name
	kind := binary.BigEndian.Uint16(query[end:])
	reply := bytes.Clone(query[:end+4])
	flags := uint16(0x8180)
	if s.fails {
		flags |= 2
	}
	binary.BigEndian.PutUint16(reply[2:], flags)
	binary.BigEndian.PutUint16(reply[10:], 0) // no additional section
	records := uint16(0)
	for _, a := range s.addresses {
		if s.fails || (kind == 1) != a.Is4() || kind != 1 && kind != 28 {
			continue
		}
		records++
		reply = append(reply, 0xc0, 12) // the name of the question
		reply = binary.BigEndian.AppendUint16(reply, kind)
		reply = append(reply, 0, 1, 0, 0, 0, 1) // IN, a TTL of a second
		reply = binary.BigEndian.AppendUint16(reply, uint16(a.BitLen()/8))
		reply = append(reply, a.AsSlice()...)
	}
	binary.BigEndian.PutUint16(reply[6:], records)
	return reply
}

// loopbacks are servers on one port of several loopback addresses.
func loopbacks(t *testing.T, serve http.HandlerFunc, hosts ...string) (port string, conns map[string]*connections) {
	t.Helper()
	conns = map[string]*connections{}
	port = "0"
	for _, host := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		srv := httptest.NewUnstartedServer(serve)
		_ = srv.Listener.Close()
		srv.Listener = l
		conns[host] = &connections{}
		srv.Config.ConnState = conns[host].watch
		srv.Start()
		t.Cleanup(srv.Close)
	}
	return port, conns
}

// A name with addresses of both families; the one that disappears from it loses its
// connections, and what is under way there ends well.
func TestNameWithManyAddresses(t *testing.T) {
	release := make(chan struct{})
	var slow atomic.Int64
	port, conns := loopbacks(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			slow.Add(1)
			<-release
		}
	}, "127.0.0.1", "127.0.0.2", "::1")
	ns := newNameServer(t, "127.0.0.1", "127.0.0.2", "::1")
	var log lines
	u, err := upstream.New(upstream.Config{
		DNS: "payments.internal.:" + port, Resolver: ns.resolver(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for range 30 {
		send(t, u, http.MethodGet, "")
	}
	for host, c := range conns {
		if c.made.Load() != 1 {
			t.Errorf("%d connections to %s, want 1", c.made.Load(), host)
		}
	}
	if s := u.Status(); len(s) != 3 || s[2].Address != net.JoinHostPort("::1", port) {
		t.Errorf("status %+v", s)
	}
	var under sync.WaitGroup
	for range 3 { // one at each address
		under.Go(func() {
			if status := send(t, u, http.MethodPut, ""); status != http.StatusOK {
				t.Errorf("a call under way at an address that has gone got %d", status)
			}
		})
	}
	waitFor(t, &slow, 3)
	ns.set("127.0.0.1")
	upstream.LookAgain(u)
	for range 30 {
		send(t, u, http.MethodGet, "")
	}
	waitForStatus(t, u, 1)
	close(release)
	under.Wait()
	waitFor(t, &conns["127.0.0.2"].open, 0)
	waitFor(t, &conns["::1"].open, 0)

	// A name server that fails, and one that knows nothing, leave what there is.
	ns.set()
	for _, fails := range []bool{true, false} {
		ns.mu.Lock()
		ns.fails = fails
		ns.mu.Unlock()
		for range 2 {
			upstream.LookAgain(u)
			if status := send(t, u, http.MethodGet, ""); status != http.StatusOK {
				t.Errorf("failing %v: status %d", fails, status)
			}
			upstream.AwaitLook(u)
		}
	}
	ns.set("127.0.0.2")
	upstream.LookAgain(u)
	send(t, u, http.MethodGet, "")
	upstream.AwaitLook(u)
	if s := u.Status(); len(s) != 1 || !strings.HasPrefix(s[0].Address, "127.0.0.2:") {
		t.Errorf("status %+v", s)
	}
	text := log.String()
	if strings.Count(text, "cannot be looked up") != 1 || strings.Count(text, "can be looked up again") != 1 {
		t.Errorf("the log says\n%s\nwant each change once", text)
	}
}

// A name that was never found is a failure of the call, with the resolver's error.
func TestNameThatIsUnknown(t *testing.T) {
	ns := newNameServer(t)
	u, err := upstream.New(upstream.Config{DNS: "payments.internal.:80", Resolver: ns.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	body := &closing{Reader: strings.NewReader("x")}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://payments.internal/", body)
	_, err = u.RoundTrip(req)
	if _, ok := err.(*net.DNSError); !ok {
		t.Errorf("got %v, want the resolver's error", err)
	}
	if !body.closed {
		t.Error("the request's body was left open")
	}
	if u.Underlying() == nil {
		t.Error("no transport to go by")
	}
	u.CloseIdleConnections()
}

type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// names is a resolver that counts.
type names struct {
	asked atomic.Int64
	hangs atomic.Bool
}

func (n *names) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	n.asked.Add(1)
	if n.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
}

// A name is looked up as long as requests come, every half minute at most, and no
// request waits for it but the first, and those after a long silence.
func TestWhenANameIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &names{}
		l := upstream.NewLookup("payments.internal:80", n)
		for range 600 { // ten minutes
			if err := l(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if asked := n.asked.Load(); asked < 20 || asked > 31 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
		// A resolver that hangs holds no one up.
		n.hangs.Store(true)
		began := time.Now()
		for range 600 {
			if err := l(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took != 600*time.Second {
			t.Errorf("requests waited %v for a look", took-600*time.Second)
		}
		n.hangs.Store(false)
		time.Sleep(time.Hour)
		before := n.asked.Load()
		if _ = l(t.Context()); n.asked.Load() != before+1 {
			t.Error("old addresses are used unseen")
		}
		synctest.Wait()
	})
}

// lines is a log that goroutines write to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func waitForStatus(t *testing.T, u *upstream.Upstream, want int) {
	t.Helper()
	for range 6000 {
		if len(u.Status()) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d addresses, want %d", len(u.Status()), want)
}
