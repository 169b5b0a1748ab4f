package upstream_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// TestRotationUnderLoad: both sides change their authorities and certificates while
// requests are under way, and none fails; in the end nothing is left of the old ones.
func TestRotationUnderLoad(t *testing.T) {
	for name, mode := range map[string]upstream.HTTP2{"HTTP/1.1": upstream.HTTP2Off, "HTTP/2.0": upstream.HTTP2Only} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			before, after := certtest.NewCA(t, "before"), certtest.NewCA(t, "after")
			both := before.Pool()
			both.AppendCertsFromPEM(after.PEM)
			var serving atomic.Pointer[tls.Certificate]
			present := func(ca *certtest.CA) { c := ca.Issue("127.0.0.1", nil).TLS(t); serving.Store(&c) }
			present(before)
			var clients sync.Map
			url := serveTLS(t, &tls.Config{
				GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
					return &tls.Config{
						Certificates: []tls.Certificate{*serving.Load()}, NextProtos: []string{"h2", "http/1.1"},
						ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: both,
					}, nil
				},
			}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				clients.Store(r.TLS.PeerCertificates[0].Subject.CommonName, r.Proto)
				proto(w, r)
			}))
			rotate := func(ca *certtest.CA, name string) {
				leaf := ca.Issue(name, nil)
				certtest.Write(t, path("tls.crt"), leaf.Cert)
				certtest.Write(t, path("tls.key"), leaf.Key)
			}
			rotate(before, "old")
			certtest.Write(t, path("ca.pem"), before.PEM)
			u := reach(t, upstream.Config{HTTP2: mode, TLS: upstream.TLS{CA: path("ca.pem"), Cert: path("tls.crt"), Key: path("tls.key")}})

			ctx, stop := context.WithCancel(t.Context())
			var load sync.WaitGroup
			var sent, failed atomic.Int64
			for range 8 {
				load.Go(func() {
					for ctx.Err() == nil {
						resp, err := post(t, u, url, 1000)
						if err != nil {
							failed.Add(1)
							t.Error(err)
							return
						}
						readAll(t, resp)
						sent.Add(1)
					}
				})
			}
			seen := func(name string) func() bool {
				return func() bool { _, ok := clients.Load(name); return ok }
			}
			eventually(t, "the old certificate", seen("old"))
			certtest.Write(t, path("ca.pem"), append(before.PEM, after.PEM...))
			time.Sleep(1500 * time.Millisecond) // the files are looked at once a second
			present(after)
			rotate(after, "new")
			eventually(t, "the new certificate", seen("new"))
			certtest.Write(t, path("ca.pem"), after.PEM)
			time.Sleep(1500 * time.Millisecond)
			clients.Clear()
			eventually(t, "the new certificate", seen("new"))
			time.Sleep(100 * time.Millisecond)
			stop()
			load.Wait()
			if seen("old")() {
				t.Error("a connection with the old certificate is still used")
			}
			if p, _ := clients.Load("new"); p != name {
				t.Errorf("the server got %v", p)
			}
			t.Logf("%d requests, %d failed", sent.Load(), failed.Load())
		})
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s was not seen", what)
}
