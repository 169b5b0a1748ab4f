package probe

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// ownCall is a program with forbear's own transport and its defaults. It returns the exit
// code.
func ownCall(url, method, body string) int {
	pem, _ := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots}
	client := &http.Client{Transport: httpretry.NewTransport(t, forbear.Must(forbear.New("server", forbear.Policy{Keys: forbear.KeyGenerate})))}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 2
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := client.Do(req)
	if err != nil {
		return 1
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

// TestOwnClient: forbear's own transport holds in all cases.
func TestOwnClient(t *testing.T) {
	t.Parallel()
	expect(t, own, func(_, outcome string) bool { return outcome != Fails && outcome != NotJudged })
}
