package httpretry_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
)

// faulty counts the requests that reach it and hands them to one handler.
func faulty(t *testing.T, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

// cut ends the connection of a handler: with a reset, or in an orderly way.
func cut(t *testing.T, w http.ResponseWriter, write string, reset bool) {
	c, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = buf.WriteString(write)
	_ = buf.Flush()
	if reset {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	_ = c.Close()
}

// send makes one call under the fast policy with its own connections.
func send(t *testing.T, req *http.Request, p forbear.Policy, opts ...httpretry.Option) (*http.Response, *counter, error) {
	t.Helper()
	rec := &counter{}
	r, err := forbear.New("payments", p, forbear.WithObserver(rec.observer()))
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	resp, err := httpretry.NewTransport(base, r, opts...).RoundTrip(req)
	if resp != nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, rec, err
}

func impatient(perAttempt time.Duration) forbear.Policy {
	p := fast
	p.PerAttempt, p.BodyIdle = perAttempt, perAttempt
	return p
}

// TestSlowHeadersAreRetried in virtual time: a machine that is busy may need longer to
// bring a request to its server.
func TestSlowHeadersAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		below := piped(t, func(_ http.ResponseWriter, r *http.Request) {
			n.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // or the server would not see the client leave
			<-r.Context().Done()
		})
		rec := &counter{}
		r := quiet(t, impatient(500*time.Millisecond), forbear.WithObserver(rec.observer()))
		rt := httpretry.NewTransport(below, r)
		_, err := rt.RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
		if !errors.Is(err, forbear.ErrExhausted) || n.Load() != 4 || rec.n.Load() != 4 || rec.last.Load().Type != "timeout" {
			t.Errorf("%v after %d requests, %d attempts reported, the last %+v; want 4 timeouts", err, n.Load(), rec.n.Load(), rec.last.Load())
		}
		n.Store(0)
		_, err = rt.RoundTrip(newRequest(t, http.MethodPost, "http://payments.test/", "x", ""))
		if !errors.Is(err, forbear.ErrNotReplayable) || n.Load() != 1 {
			t.Errorf("POST without a key: %d requests and %v, want 1 and ErrNotReplayable", n.Load(), err)
		}
	})
}

func TestFaultsBeforeTheResponseAreRetried(t *testing.T) {
	for _, tc := range []struct {
		name   string
		errTyp string
		h      func(t *testing.T) http.HandlerFunc
	}{
		{"reset after the request", "connection_reset", func(t *testing.T) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { cut(t, w, "", true) }
		}},
		{"close after the request", "eof", func(t *testing.T) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { cut(t, w, "", false) }
		}},
		{"cut inside the headers", "unexpected_eof", func(t *testing.T) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				cut(t, w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, n := faulty(t, tc.h(t))
			_, rec, err := send(t, newRequest(t, http.MethodGet, s.URL, "", ""), fast)
			if !errors.Is(err, forbear.ErrExhausted) {
				t.Fatalf("got %v, want ErrExhausted", err)
			}
			if n.Load() != 4 || rec.n.Load() != 4 {
				t.Errorf("%d requests, %d attempts reported; want 4 of both", n.Load(), rec.n.Load())
			}
			if got := rec.last.Load().Type; got != tc.errTyp {
				t.Errorf("error_type %q, want %q (%v)", got, tc.errTyp, err)
			}

			n.Store(0)
			_, _, err = send(t, newRequest(t, http.MethodPost, s.URL, "x", ""), fast)
			if !errors.Is(err, forbear.ErrNotReplayable) || n.Load() != 1 {
				t.Errorf("POST without a key: %d requests and %v, want 1 and ErrNotReplayable", n.Load(), err)
			}
		})
	}
}

func TestFaultsInsideTheBodyAreTheCallers(t *testing.T) {
	for _, tc := range []struct {
		name string
		want error
		h    func(t *testing.T, received <-chan struct{}) http.HandlerFunc
	}{
		{"reset mid-body", syscall.ECONNRESET, func(t *testing.T, received <-chan struct{}) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				<-received // or the reset could overtake the headers
				cut(t, w, "", true)
			}
		}},
		{"truncated body", io.ErrUnexpectedEOF, func(t *testing.T, _ <-chan struct{}) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				cut(t, w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false)
			}
		}},
		{"stalled body", context.DeadlineExceeded, func(*testing.T, <-chan struct{}) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			received := make(chan struct{}, 1)
			s, n := faulty(t, tc.h(t, received))
			p := impatient(10 * time.Second)
			if tc.want == context.DeadlineExceeded {
				p.BodyIdle = 500 * time.Millisecond
			}
			resp, _, err := send(t, newRequest(t, http.MethodGet, s.URL, "", ""), p)
			received <- struct{}{}
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			if !errors.Is(err, tc.want) {
				t.Errorf("reading the body: %v, want %v", err, tc.want)
			}
			if n.Load() != 1 {
				t.Errorf("%d requests, want 1: the response was handed over", n.Load())
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()

	_, rec, err := send(t, newRequest(t, http.MethodGet, url, "", ""), fast)
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, forbear.ErrExhausted) || rec.n.Load() != 4 {
		t.Errorf("GET: %d attempts, %v", rec.n.Load(), err)
	}
	_, rec, err = send(t, newRequest(t, http.MethodPost, url, "x", ""), fast)
	if !errors.Is(err, forbear.ErrNotReplayable) || rec.n.Load() != 1 {
		t.Errorf("POST without a key: %d attempts, %v; R-6 allows one", rec.n.Load(), err)
	}
	unsent := fast
	unsent.RetryUnsent = true
	_, rec, err = send(t, newRequest(t, http.MethodPost, url, "x", ""), unsent)
	if !errors.Is(err, forbear.ErrExhausted) || rec.n.Load() != 4 {
		t.Errorf("POST with retry_unsent: %d attempts, %v; want 4", rec.n.Load(), err)
	}
}

// TestNameNotFound asks a name server of its own that knows no name.
func TestNameNotFound(t *testing.T) {
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dns.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := dns.ReadFrom(buf)
			if err != nil {
				return
			}
			buf[2], buf[3] = 0x81, 0x83 // an answer: no such name
			_, _ = dns.WriteTo(buf[:n], from)
		}
	}()
	dialer := &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}}
	rec := &counter{}
	r, err := forbear.New("payments", fast, forbear.WithObserver(rec.observer()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = httpretry.NewTransport(&http.Transport{DialContext: dialer.DialContext}, r).
		RoundTrip(newRequest(t, http.MethodGet, "http://payments.invalid./", "", ""))
	if rec.n.Load() != 2 || rec.last.Load().Type != "dns_not_found" {
		t.Errorf("%d attempts, %+v, %v; R-4 allows two", rec.n.Load(), rec.last.Load(), err)
	}
}

// certificateFor makes a self-signed certificate.
func certificateFor(t *testing.T, host string, notAfter time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host},
		NotBefore: notAfter.Add(-48 * time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{host},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, pool
}

func TestRefusedCertificatesAreTriedOnce(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour)
	for _, tc := range []struct {
		name, host string
		notAfter   time.Time
		trusted    bool
	}{
		{"expired", "127.0.0.1", time.Now().Add(-time.Hour), true},
		{"wrong host", "elsewhere.test", tomorrow, true},
		{"unknown authority", "127.0.0.1", tomorrow, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cert, pool := certificateFor(t, tc.host, tc.notAfter)
			var handshakes atomic.Int64
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.TLS = &tls.Config{
				Certificates: []tls.Certificate{cert},
				GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
					handshakes.Add(1)
					return nil, nil
				},
			}
			s.Config.ErrorLog = discardLog()
			s.StartTLS()
			t.Cleanup(s.Close)
			base := &http.Transport{TLSClientConfig: &tls.Config{}}
			if tc.trusted {
				base.TLSClientConfig.RootCAs = pool
			}
			rec := &counter{}
			r, err := forbear.New("payments", fast, forbear.WithObserver(rec.observer()))
			if err != nil {
				t.Fatal(err)
			}
			_, err = httpretry.NewTransport(base, r).RoundTrip(newRequest(t, http.MethodGet, s.URL, "", ""))
			if !errors.Is(err, forbear.ErrCertificate) {
				t.Errorf("got %v, want ErrCertificate", err)
			}
			if handshakes.Load() != 1 || rec.n.Load() != 1 {
				t.Errorf("%d handshakes, %d attempts; R-9 allows one", handshakes.Load(), rec.n.Load())
			}
		})
	}
}

func TestGigabyteOfErrorBodyIsNotRead(t *testing.T) {
	var written atomic.Int64
	s, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1073741824")
		w.WriteHeader(http.StatusServiceUnavailable)
		block := make([]byte, 64<<10)
		for range 16 << 10 {
			k, err := w.Write(block)
			written.Add(int64(k))
			if err != nil {
				return
			}
		}
	})
	resp, _, err := send(t, newRequest(t, http.MethodGet, s.URL, "", ""), fast)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || n.Load() != 4 {
		t.Errorf("status %d after %d requests, want 503 after 4", resp.StatusCode, n.Load())
	}
	_ = resp.Body.Close()
	if got := written.Load(); got > 256<<20 {
		t.Errorf("%d MiB were taken from the server", got>>20)
	}
}

func TestDiscardedAnswersGiveTheirConnectionBack(t *testing.T) {
	for name, opts := range map[string][]httpretry.Option{"default": nil, "bare": bare()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a moment is what they have to be drained
				var conns, n atomic.Int64
				below := piped(t, func(w http.ResponseWriter, _ *http.Request) {
					if n.Add(1)%3 != 0 {
						http.Error(w, strings.Repeat("busy ", 3000), http.StatusServiceUnavailable)
					}
				})
				dial := below.DialContext
				below.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					conns.Add(1)
					return dial(ctx, network, address)
				}
				patient := fast
				patient.Breaker.Disabled = true // two failures in three would open it
				r := quiet(t, patient, forbear.WithBudget(budget.NewTokenBucket(1000, 0)))
				client := &http.Client{Transport: httpretry.NewTransport(below, r, opts...)}
				for range 20 {
					resp, err := client.Get("http://payments.test/")
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						t.Fatalf("status %d, want 200 at the third attempt", resp.StatusCode)
					}
				}
				if conns.Load() != 1 {
					t.Errorf("%d connections for 60 requests, want 1", conns.Load())
				}
			})
		})
	}
}
