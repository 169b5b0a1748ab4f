package serve

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// TestServeTLS: a policy file names certificates for both sides, by paths beside
// itself; the files change while serve runs; and another path takes a reload.
func TestServeTLS(t *testing.T) {
	ca, dir := certtest.NewCA(t, "ca"), t.TempDir()
	write := func(name string, data []byte) { certtest.Write(t, filepath.Join(dir, name), data) }
	pair := func(name string) {
		leaf := ca.Issue("127.0.0.1", nil)
		write(name+".crt", leaf.Cert)
		write(name+".key", leaf.Key)
	}
	write("ca.pem", ca.PEM)
	pair("gw")
	pair("client")
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	up.EnableHTTP2 = true
	up.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.Issue("127.0.0.1", nil).TLS(t)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(),
	}
	up.StartTLS()
	t.Cleanup(up.Close)
	policy := func(http2, key string) {
		write("policy.yaml", []byte(`
dependencies:
  up:
    url: `+up.URL+`
    http2: "`+http2+`"
    health: {endpoint: '`+up.URL+`/health', interval: 10ms}
    tls: {ca: ca.pem, cert: client.crt, key: `+key+`, min_version: 1.3}
gateway:
  listen: 127.0.0.1:0
  tls: {cert: gw.crt, key: gw.key, client_ca: ca.pem}
  routes: [{prefix: /, dependency: up}]
`))
	}
	policy("only", "client.key")
	s := startServe(t, "--config", filepath.Join(dir, "policy.yaml"), "--reload-every", "10ms")
	if !strings.HasPrefix(s.base, "https://") {
		t.Fatalf("the address is %s", s.base)
	}
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue("caller", nil).TLS(t)},
	}}}
	t.Cleanup(client.CloseIdleConnections)
	get := func() string {
		t.Helper()
		resp, err := client.Get(s.base + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || resp.Proto != "HTTP/2.0" {
			t.Fatalf("got %s %s: %s", resp.Proto, resp.Status, body)
		}
		return string(body)
	}
	first := get()
	if !strings.HasPrefix(first, "HTTP/2.0 ") {
		t.Errorf("the dependency got %s", first)
	}
	pair("client")
	eventually(t, "the new client certificate", func() bool { return get() != first })
	policy("off", "client.key")
	eventually(t, "HTTP/1.1", func() bool { return strings.HasPrefix(get(), "HTTP/1.1 ") })
	policy("off", "missing.key")
	eventually(t, "the refusal", func() bool { return strings.Contains(s.log.String(), "missing.key: no such file") })
	get()
	if log := s.log.String(); !strings.Contains(log, "dependency=up") || strings.Contains(log, "unhealthy") || strings.Contains(log, "PRIVATE") {
		t.Errorf("log:\n%s", log)
	}
	if code := s.stop(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestServeWithoutItsCertificate(t *testing.T) {
	const routes = "  routes: [{prefix: /, dependency: up}]\n"
	for want, text := range map[string]string{
		"dependency up: open": "dependencies: {up: {url: 'https://a.test', tls: {ca: none.pem}}}\ngateway:\n" + routes,
		"gateway.tls: ":       "dependencies: {up: {url: 'https://a.test'}}\ngateway:\n  listen: 127.0.0.1:0\n  tls: {cert: none.crt, key: none.key}\n" + routes,
	} {
		path := clitest.File(t, "policy.yaml", text)
		got := clitest.Run(t, Command(), "", "--config", path)
		want = strings.Replace(want, "open", "stat "+filepath.Dir(path), 1)
		if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, want) || !strings.Contains(got.Errors, filepath.Dir(path)) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

// TestFaultsOfFilesAtOnce: what the policy file names and serve cannot use is listed in
// one run, and each line says whose it is.
func TestFaultsOfFilesAtOnce(t *testing.T) {
	t.Setenv("SERVE_TEST_EMPTY", "")
	path := clitest.File(t, "policy.yaml", `
dependencies:
  a: {url: 'https://a.test', tls: {ca: a.pem, cert: a.crt, key: a.key}, credentials: {secret: {env: SERVE_TEST_EMPTY}}, health: {endpoint: 'https://a.test/health'}}
  b: {url: 'https://b.test', tls: {ca: policy.yaml}}
gateway:
  listen: 127.0.0.1:0
  tls: {cert: gw.crt, key: gw.key, client_ca: callers.pem}
  routes: [{prefix: /a, dependency: a}, {prefix: /also, dependency: a}, {prefix: /b, dependency: b}]
`)
	beside := func(name string) string { return filepath.Join(filepath.Dir(path), name) }
	want := strings.Join([]string{
		"forbear: serve: " + path + ":3:3: credentials of a: environment variable SERVE_TEST_EMPTY is empty: set it where the gateway runs, or name a file with {file: PATH}",
		"dependency a: stat " + beside("a.pem") + ": no such file or directory",
		"dependency a: stat " + beside("a.crt") + ": no such file or directory",
		"dependency a: stat " + beside("a.key") + ": no such file or directory",
		"dependency b: " + beside("policy.yaml") + ": it holds no PEM certificate",
		"gateway.tls: stat " + beside("callers.pem") + ": no such file or directory",
		"gateway.tls: stat " + beside("gw.crt") + ": no such file or directory",
		"gateway.tls: stat " + beside("gw.key") + ": no such file or directory",
	}, "\n") + "\n"
	got := clitest.Run(t, Command(), "", "--admin", "off", "--config", path)
	if got.Code != cli.ExitUsage || got.Out != "" || got.Errors != want {
		t.Errorf("got %d, %s\n%swant\n%s", got.Code, got.Out, got.Errors, want)
	}
}
