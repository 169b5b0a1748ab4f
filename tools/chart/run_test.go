package chart

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// Each policy of the chart passes forbear check, in the words of a user: exit code 0.
func TestPoliciesPassCheck(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, m *manifest) {
		for _, c := range all[*corev1.ConfigMap](m) {
			text, ok := c.Data["policy.yaml"]
			if !ok {
				continue
			}
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "check", file)
			cmd.Env = append(os.Environ(), "PAYMENTS_CLIENT_SECRET=s", "PARTNER_URL=https://partner.example")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", c.Name, err, out)
			}
		}
	})
}

// forbear knows each flag that the chart gives it: what it complains of is the policy
// file, which is not there, and what comes after its flags.
func TestFlagsAreKnown(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, m *manifest) {
		for _, p := range m.pods() {
			if p.forbear.Args[0] != "serve" {
				continue
			}
			out, err := exec.Command(path, append(p.forbear.Args, "--config=/nowhere/policy.yaml")...).CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("/nowhere/policy.yaml: no such file")) && !bytes.Contains(out, []byte("open /nowhere/policy.yaml")) {
				t.Errorf("%s: %v\n%s", p.name, err, out)
			}
		}
	})
}

// flaky refuses the first attempt.
func flaky(t *testing.T) *httptest.Server {
	t.Helper()
	var calls atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "paid")
	}))
	t.Cleanup(up.Close)
	return up
}

func policyOver(url, prefix string) string {
	return "service: checkout\ndependencies:\n  payments: {url: '" + url + "', owner: checkout, idempotency: reuse, backoff: {base: 1ms}}\n" +
		"gateway:\n  routes: [{prefix: " + prefix + ", dependency: payments}]\n"
}

// withPolicy is the flag that sets a policy.
func withPolicy(t *testing.T, key, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--set-file=" + key + "=" + file
}

func get(url string) (int, string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// The rendered gateway retries, takes up another policy in place, and drains: not ready,
// and still serving.
func TestGatewayRuns(t *testing.T) {
	up := flaky(t)
	m := template(t, "-f", values("minimal"), withPolicy(t, "gateway.policy", policyOver(up.URL, "/payments")), "--set", "gateway.drain.delaySeconds=3")
	p := m.pods()[0]
	k := &kubelet{}
	c := k.start(t, m, p)
	base := "http://" + c.ports["http"]
	if code, body := get(base + "/payments/1"); code != 200 || body != "paid" {
		t.Errorf("through the gateway: %d %s", code, body)
	}
	project(t, k.volumes["forbear-policy"], map[string]string{"policy.yaml": policyOver(up.URL, "/refunds")})
	until(t, "another policy", func() bool { code, _ := get(base + "/refunds/1"); return code == 200 })
	c.end(t, p, func() {
		until(t, "not ready", func() bool { return c.probe(p.forbear.ReadinessProbe) == http.StatusServiceUnavailable })
		if got := c.probe(p.forbear.LivenessProbe); got != http.StatusOK {
			t.Errorf("live while it drains: %d", got)
		}
		if code, body := get(base + "/refunds/2"); code != 200 {
			t.Errorf("while it drains: %d %s", code, body)
		}
	})
}

// The sidecar of the example starts as rendered.
func TestSidecarRuns(t *testing.T) {
	m := example(t)
	k := &kubelet{}
	c := k.start(t, m, m.pods()[0])
	if code, _ := get("http://" + c.ports["http"] + "/elsewhere"); code != 404 {
		t.Errorf("a path without a route: %d", code)
	}
	c.end(t, m.pods()[0], func() {})
}

// secretsOfEverything are those that the values name.
func secretsOfEverything(owner, serve string) map[string]string {
	return map[string]string{
		"forbear-postgres/owner": owner, "forbear-postgres/serve": serve, "forbear-postgres/url": serve,
		"forbear-api/token": "a-token-of-the-api\n", "forbear-admin/token": "a-token-of-the-admin\n", "forbear-metrics/token": "a-token-of-the-metrics\n",
		"forbear-keys/new": strings.Repeat("n", 32), "forbear-keys/old": strings.Repeat("o", 32),
		"acme/secret": "whsec_" + strings.Repeat("YWJj", 8), "redis/url": "redis://127.0.0.1:1/0",
	}
}

// The rendered Job migrates as the owner of the tables; the rendered deliverer, a user
// that may change none, then delivers one signed message, and the gateway beside it has
// its idempotency keys in the same database.
func TestDeliveryRuns(t *testing.T) {
	postgres := pgtest.Start(t)
	owner := postgres.URL("postgres")
	serve := strings.Replace(owner, "forbear@", "serve@", 1)
	received := make(chan *http.Request, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case received <- r:
		default:
		}
	}))
	defer receiver.Close()
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	gateway := policyOver(up.URL, "/payments") + "  trusted_proxies: [127.0.0.1]\n"
	gateway = strings.Replace(gateway, "dependency: payments}", "dependency: payments, idempotency: {principal: single}}", 1)
	m := template(t, "-f", values("everything"), "--set", "delivery.allowTargets={127.0.0.0/8}", "--set", "delivery.drain.delaySeconds=0",
		"--set", "gateway.drain.delaySeconds=0", withPolicy(t, "gateway.policy", gateway))
	pods := map[string]pod{}
	for _, p := range m.pods() {
		pods[p.name] = p
	}
	k := &kubelet{secrets: secretsOfEverything(owner, serve)}
	if out, err := k.command(t, m, pods["forbear-migration"]).run(); err != nil || !strings.Contains(out, "0010") {
		t.Fatalf("the migration: %v\n%s", err, out)
	}
	for _, statement := range []string{
		"CREATE ROLE serve LOGIN",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO serve",
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO serve",
	} {
		postgres.Exec(t, statement)
	}

	p := pods["forbear-delivery"]
	c := k.start(t, m, p)
	api := func(method, path, body string, want int) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+c.ports["http"]+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer a-token-of-the-api")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != want {
			t.Fatalf("%s %s: %d %s\n%s", method, path, resp.StatusCode, text, c.log)
		}
	}
	api("PUT", "/v1/endpoints/acme", `{"url":"`+receiver.URL+`/hook","secrets":["env:ACME"]}`, 200)
	api("POST", "/v1/messages", `{"endpoint":"acme","type":"order.shipped","payload":{"order":4711}}`, 202)
	r := <-received
	if r.Header.Get("Webhook-Signature") == "" {
		t.Errorf("an unsigned message: %v", r.Header)
	}
	if code, _ := get("http://" + c.ports["http"] + "/v1/endpoints"); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	if code, _ := get("http://" + c.ports["metrics"] + "/metrics"); code != 401 {
		t.Errorf("the metrics without a token: %d", code)
	}
	g := k.start(t, m, pods["forbear"])
	keyed, err := http.NewRequest("POST", "http://"+g.ports["http"]+"/payments/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	keyed.Header.Set("Idempotency-Key", "4711")
	resp, err := http.DefaultClient.Do(keyed)
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("a keyed request: %v %v\n%s", resp, err, g.log)
	}
	records := k.command(t, m, pods["forbear-migration"])
	records.Args = []string{records.Path, "keys", "list", "--state", "all"}
	if out, err := records.run(); err != nil || !strings.Contains(out, "completed") {
		t.Errorf("its record: %v\n%s", err, out)
	}
	g.end(t, pods["forbear"], func() {})
	c.end(t, p, func() {})
}

// run runs a container that ends by itself.
func (c *container) run() (string, error) {
	err := c.Cmd.Run()
	return c.log.String(), err
}
