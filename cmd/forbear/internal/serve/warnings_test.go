package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func credentialsPolicy(url string) string {
	return "dependencies:\n  search: {url: '" + url + "', credentials: {secret: {env: SEARCH_SECRET}}}\n  open: {url: '" + url + "'}\n" +
		"gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /search, dependency: search}\n    - {prefix: /open, dependency: open}\n"
}

// ask sends a GET by a Host of its own, and returns the status.
func ask(t *testing.T, url, host string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// By loopback a route's own credentials are out of reach of pages in a browser,
// whatever else is listened on; what listening beyond it means is in the log.
func TestServeGuardsCredentials(t *testing.T) {
	t.Setenv("SEARCH_SECRET", "Bearer s3cret")
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	config := clitest.File(t, "policy.yaml", credentialsPolicy(up.URL))
	s := startServe(t, "--config", config, "--admin", "off")
	for _, tt := range []struct {
		path, host, site string
		want             int
	}{
		{"/search", "", "", 200}, {"/search", "evil.example", "", 403}, {"/search", "", "cross-site", 403}, {"/open", "evil.example", "cross-site", 200},
	} {
		var headers []string
		if tt.site != "" {
			headers = []string{"Sec-Fetch-Site", tt.site}
		}
		if got := ask(t, s.base+tt.path, tt.host, headers...); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
	s.stop()
	if strings.Contains(s.log.String(), "beyond loopback") {
		t.Errorf("on loopback: %s", s.log)
	}

	beyond := closed(t)
	port := beyond[strings.LastIndexByte(beyond, ':'):]
	s = startAt(t, beyond, "--config", config, "--admin", "off", "--no-delivery", "--listen", "0.0.0.0"+port)
	if got := ask(t, beyond+"/search", "gateway.example"); got != 403 {
		t.Errorf("by its loopback address, which pages reach too: %d", got)
	}
	if got := ask(t, beyond+"/search", "", "Sec-Fetch-Site", "cross-site"); got != 403 {
		t.Errorf("beyond loopback, a page: %d", got)
	}
	s.stop()
	for _, want := range []string{"level=WARN", "beyond loopback", "credentials", "0.0.0.0" + port, "--listen 127.0.0.1" + port, "gateway.listen"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, s.log)
		}
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Error("the log has the secret")
	}
}

// What stands in the way of listening beyond loopback says what each way around
// it is: a flag, a variable, or something else.
func TestServeBeyondLoopbackErrors(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	config := downPolicy(t, up.URL)
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"the admin endpoint": {
			[]string{"--admin", "0.0.0.0:0"},
			[]string{"0.0.0.0:0", "needs a token", "--admin-token-file", "FORBEAR_ADMIN_TOKEN", "--admin 127.0.0.1:0", "--metrics"},
		},
		"the delivery API": {
			[]string{"--admin", "off", "--listen", "0.0.0.0:0"},
			[]string{"0.0.0.0:0", "needs a token", "--api-token-file", "FORBEAR_API_TOKEN", "--api 127.0.0.1", "--no-delivery", "FORBEAR_DATABASE"},
		},
	} {
		got := clitest.Run(t, Command(), "", append([]string{"--config", config}, tt.args...)...)
		for _, want := range tt.want {
			if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, want) {
				t.Errorf("%s: code %d, want %q in: %s", name, got.Code, want, got.Errors)
			}
		}
	}
}

// Prometheus reads the metrics with a token of its own, or at an address of their
// own, and with neither may it force a breaker or read the status.
func TestServeMetricsApart(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	config := downPolicy(t, up.URL)
	adminFile, metricsFile := clitest.File(t, "admin", "adm1n-adm1n-adm1n\n"), clitest.File(t, "metrics", "metr1cs-metr1cs-m\n")
	admin, apart := closed(t), closed(t)
	bare := func(base string) string { return strings.TrimPrefix(base, "http://") }
	const override = `{"state":"open","actor":"prometheus"}`
	check := func(what string, want int, method, url, body string, headers ...string) {
		t.Helper()
		if code, text := status(t, method, url, body, headers...); code != want {
			t.Errorf("%s: got %d %.80q, want %d", what, code, text, want)
		}
	}

	s := startServe(t, "--config", config, "--admin", bare(admin), "--admin-token-file", adminFile, "--metrics-token-file", metricsFile)
	check("no token", 401, "GET", admin+"/metrics", "")
	check("the metrics' token", 200, "GET", admin+"/metrics", "", "Authorization", "Bearer metr1cs-metr1cs-m")
	check("the admin's token", 200, "GET", admin+"/metrics", "", "Authorization", "Bearer adm1n-adm1n-adm1n")
	check("status by the metrics' token", 401, "GET", admin+"/admin/status", "", "Authorization", "Bearer metr1cs-metr1cs-m")
	check("override by the metrics' token", 401, "POST", admin+"/admin/breakers/search", override, "Authorization", "Bearer metr1cs-metr1cs-m")
	check("POST by the metrics' token", 401, "POST", admin+"/metrics", "", "Authorization", "Bearer metr1cs-metr1cs-m")
	check("status by the admin's token", 200, "GET", admin+"/admin/status", "", "Authorization", "Bearer adm1n-adm1n-adm1n")
	s.stop()

	// Without an admin token the metrics still demand theirs.
	s = startServe(t, "--config", config, "--admin", bare(admin), "--metrics-token-file", metricsFile)
	check("no token, admin open", 401, "GET", admin+"/metrics", "")
	check("status, admin open", 200, "GET", admin+"/admin/status", "")
	s.stop()

	s = startServe(t, "--config", config, "--admin", bare(admin), "--admin-token-file", adminFile, "--metrics", bare(apart))
	if !strings.Contains(s.out, "metrics on "+apart+"/metrics") {
		t.Errorf("the greeting: %s", s.out)
	}
	check("apart, no token", 200, "GET", apart+"/metrics", "")
	check("apart, the admin's pages", 404, "GET", apart+"/admin/status", "")
	check("apart, an override", 404, "POST", apart+"/admin/breakers/search", override)
	check("apart, a write", 404, "POST", apart+"/metrics", "")
	check("on the admin's address, no token", 401, "GET", admin+"/metrics", "")
	if got := ask(t, apart+"/metrics", "evil.example"); got != 403 {
		t.Errorf("apart, by a name that was rebound: %d", got)
	}
	s.stop()

	port := apart[strings.LastIndexByte(apart, ':'):]
	s = startServe(t, "--config", config, "--admin", "off", "--metrics", "0.0.0.0"+port, "--metrics-token-file", metricsFile)
	check("beyond loopback, no token", 401, "GET", apart+"/metrics", "")
	check("beyond loopback, the token", 200, "GET", apart+"/metrics", "", "Authorization", "Bearer metr1cs-metr1cs-m")
	s.stop()

	s = startServe(t, "--config", config, "--admin", "off", "--metrics", "0.0.0.0"+port)
	if got := ask(t, apart+"/metrics", "gateway.example"); got != 200 {
		t.Errorf("beyond loopback, open by choice: %d", got)
	}
	s.stop()
	if got := clitest.Run(t, Command(), "", "--config", config, "--metrics-token-file", clitest.File(t, "empty", "\n")); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "at least 16 characters") {
		t.Errorf("an empty token file: %+v", got)
	}
}
