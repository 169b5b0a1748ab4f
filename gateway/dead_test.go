package gateway_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// Upstream connections that a firewall has forgotten lose no call of a caller that may be
// retried, over HTTP/1 in clear and over HTTP/2; the breaker stays closed.
func TestForgottenUpstreamConnections(t *testing.T) {
	const callers = 20
	for name, secure := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arrived sync.WaitGroup
			arrived.Add(callers)
			up := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/warm" { // all at once, so that as many connections are needed
					arrived.Done()
					arrived.Wait()
				}
			}))
			config, target := upstream.Config{}, "http://"
			if secure {
				up.EnableHTTP2 = true
				up.StartTLS()
				config.TLS, target = upstream.TLS{CA: caFile(t, up.Certificate()), ServerName: "example.com"}, "https://"
			} else {
				up.Start()
			}
			t.Cleanup(up.Close)
			relay := porttest.NewRelay(t, up.Listener.Addr().String())
			u, err := upstream.New(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(u.Close)
			r := retryer(t, forbear.Policy{})
			address := start(t, gateway.Route{Prefix: "/up", Target: parse(t, target+relay.Address()), Retryer: r, Transport: u})
			each := func(n int, path string) {
				var calls sync.WaitGroup
				for range callers {
					calls.Go(func() {
						for range n {
							if got := get(t, address+"/up"+path); got.StatusCode != http.StatusOK {
								t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
							}
						}
					})
				}
				calls.Wait()
			}
			each(1, "/warm")
			t.Logf("%d connections were forgotten", relay.Forget())
			each(20, "/")
			if s := r.Breaker().State(); s != breaker.Closed {
				t.Errorf("the breaker is %v", s)
			}
		})
	}
}

// caFile returns a file with a certificate to be trusted.
func caFile(t *testing.T, c *x509.Certificate) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
