package serve

import (
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// The delivery API has an address of its own, over TLS, for those whose certificate is
// of the right authority.
func TestAPIOverTLS(t *testing.T) {
	ca, dir := certtest.NewCA(t, "ca"), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	leaf := ca.Issue("127.0.0.1", nil)
	certtest.Write(t, file("api.crt"), leaf.Cert)
	certtest.Write(t, file("api.key"), leaf.Key)
	certtest.Write(t, file("ca.pem"), ca.PEM)
	s := startServe(t, "--listen", "127.0.0.1:0", "--database", file("forbear.db"), "--api", "127.0.0.1:0",
		"--api-tls-cert", file("api.crt"), "--api-tls-key", file("api.key"), "--api-tls-client-ca", file("ca.pem"))
	base := regexp.MustCompile(`post messages to (https://127[0-9.:]+)/v1/messages`).FindStringSubmatch(s.out)
	if base == nil {
		t.Fatalf("the greeting says nothing of the API: %s", s.out)
	}
	get := func(address string, certs ...tls.Certificate) (string, error) {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: certs}, ForceAttemptHTTP2: true}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get(address + "/v1/endpoints")
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		return resp.Proto + " " + resp.TLS.PeerCertificates[0].SerialNumber.String() + " " + string(body), err
	}
	client := ca.Issue("127.0.0.1", nil).TLS(t)
	got, err := get(base[1], client)
	if err != nil || !strings.HasPrefix(got, "HTTP/2.0 ") || !strings.Contains(got, `"endpoints":[]`) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := get(base[1]); err == nil {
		t.Errorf("without a certificate: %q", got)
	}
	if got, err := get(base[1], certtest.NewCA(t, "another").Issue("127.0.0.1", nil).TLS(t)); err == nil {
		t.Errorf("with another's certificate: %q", got)
	}
	bad := clitest.Run(t, Command(), "", "--listen", "127.0.0.1:0", "--database", file("other.db"), "--api-tls-cert", file("api.crt"))
	if bad.Code != cli.ExitUsage || !strings.Contains(bad.Errors, "--api-tls-cert needs --api") {
		t.Errorf("without an address of its own: %+v", bad)
	}
}
