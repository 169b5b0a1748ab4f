package gateway_test

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
)

// TestRefreshFailureHasItsCause: the log says what to mend where no credentials can
// be had, and shows nothing of a secret or of what the token server said.
func TestRefreshFailureHasItsCause(t *testing.T) {
	t.Setenv("GATEWAY_TEST_SECRET", "planted-secret")
	of := func(address string) gateway.CredentialSource {
		return gateway.CredentialSource{TokenURL: address, ClientID: "checkout", ClientSecret: gateway.Reference{Env: "GATEWAY_TEST_SECRET"}}
	}
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown.StartTLS()
	t.Cleanup(unknown.Close)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"planted"}`)
	}))
	t.Cleanup(refuses.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	missing := filepath.Join(t.TempDir(), "authorization")
	empty, write := stored(t, "")
	write("")
	redirects := scripted(t, "HTTP/1.1 302 Found\r\nLocation: http://[planted/\r\nContent-Length: 0\r\n\r\n")
	quotes := scripted(t, "planted planted\r\n\r\n")

	for _, tc := range []struct {
		name   string
		source gateway.CredentialSource
		want   string
	}{
		{"unknown authority", of(unknown.URL), "token request to " + host(t, unknown.URL) + ": the server's certificate is signed by an unknown authority"},
		{"refused", of(refuses.URL), "token request to " + host(t, refuses.URL) + ": response 401"},
		{"no server", of(gone.URL), "token request to " + host(t, gone.URL) + ": connection_refused"},
		{"no HTTP", of(quotes), "token request to " + host(t, quotes) + ": the server's response is not HTTP"},
		{"a redirect", of(redirects), "token request to " + host(t, redirects) + ": the response cannot be read"},
		{"no file", gateway.CredentialSource{Secret: gateway.Reference{File: missing}}, "open " + missing + ": no such file"},
		{"an empty file", empty, "file " + empty.Secret.File + " is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines bytes.Buffer
			r, err := forbear.New("upstream", quick, forbear.WithObserver(forbear.LogObserver(slog.New(slog.NewTextHandler(&lines, nil)), nil)), forbear.WithoutLog(),
				forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
			if err != nil {
				t.Fatal(err)
			}
			c, err := tc.source.Credentials()
			if err != nil {
				t.Fatal(err)
			}
			address := start(t, gateway.Route{Prefix: "/", Target: parse(t, gone.URL), Retryer: r, Credentials: c})
			a := get(t, address+"/x")
			if p := readProblem(t, a); p.Reason != "refresh_failed" {
				t.Errorf("got %+v", p)
			}
			line, _, _ := strings.Cut(lines.String(), "\n")
			if !strings.Contains(line, `msg="token refresh failed"`) || !strings.Contains(line, `cause="`+tc.want) {
				t.Errorf("logged %s\nwant the cause %s", line, tc.want)
			}
			if said := lines.String() + a.body; strings.Contains(said, "planted") {
				t.Errorf("a secret, or the token server's words, are in %s", said)
			}
		})
	}
}

func host(t testing.TB, address string) string {
	t.Helper()
	return parse(t, address).Host
}
