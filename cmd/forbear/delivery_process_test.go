package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// egressPolicy is a policy file of a gateway that sends requests on and nothing
// else, with more of it appended.
func egressPolicy(url, prefix, more string) string {
	return "service: checkout\ndependencies:\n  search: {url: '" + url + "', owner: checkout}\n" + more +
		"gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: " + prefix + ", dependency: search}\n"
}

const keyedRoute = "    - {prefix: /pay, dependency: search, idempotency: {principal: single}}\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get returns the status and the body of a response.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func upstream(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "up "+r.URL.Path) }))
	t.Cleanup(up.Close)
	return up.URL
}

// A gateway that only sends requests on makes no database, says so, and tells
// those who ask for deliveries how to have them.
func TestPureEgressMakesNoDatabase(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "policy.yaml"), egressPolicy(upstream(t), "/search", ""))
	p := startProcess(t, folder, "022", "--config", "policy.yaml", "--admin", "off")
	if code, body := get(t, p.base+"/search/a"); code != 200 || body != "up /a" {
		t.Errorf("through the gateway: %d %s", code, body)
	}
	if code, body := get(t, p.base+"/v1/endpoints"); code != 404 || !strings.Contains(body, "--database") || !strings.Contains(body, "urn:forbear:problem:no-delivery") {
		t.Errorf("the delivery API: %d %s", code, body)
	}
	if !strings.Contains(p.greeting, "deliveries: off, and no database; on with --database") {
		t.Errorf("the greeting: %s", p.greeting)
	}
	p.stop(t)
	if got := modes(t, folder); len(got) != 1 {
		t.Errorf("files: %v, want the policy file alone", got)
	}
}

// Deliveries are on wherever they were asked for.
func TestDeliveriesAreOnWhereAsked(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   string // more of the policy file
		args     []string
		env      string
		greeting string
	}{
		{name: "a flag", args: []string{"--database", "other.db"}, greeting: "deliveries: on, in other.db, a new file (--database); off with --no-delivery"},
		{name: "another flag", args: []string{"--allow-target", "127.0.0.0/8"}, greeting: "on, in forbear.db, a new file (--allow-target);"},
		{name: "the environment", env: "FORBEAR_DATABASE=env.db", greeting: "on, in env.db, a new file (FORBEAR_DATABASE);"},
		{name: "webhooks", policy: "webhooks:\n  partner: {owner: checkout, dead_letter: {queue: q, alert: a}}\n", greeting: "(webhooks in the policy file);"},
		{name: "keys", policy: "keyed", greeting: "(idempotency keys in the policy file);"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			policy := egressPolicy(upstream(t), "/search", tt.policy)
			if tt.policy == "keyed" {
				policy = egressPolicy(upstream(t), "/search", "") + keyedRoute
			}
			write(t, filepath.Join(folder, "policy.yaml"), policy)
			cmd := command(t, folder, "022", append([]string{"--config", "policy.yaml", "--admin", "off"}, tt.args...)...)
			if tt.env != "" {
				cmd.Env = append(cmd.Env, tt.env)
			}
			p := startCommand(t, cmd)
			if code, body := get(t, p.base+"/v1/endpoints"); code != 200 {
				t.Errorf("the delivery API: %d %s", code, body)
			}
			if !strings.Contains(p.greeting, tt.greeting) {
				t.Errorf("the greeting lacks %q: %s", tt.greeting, p.greeting)
			}
			p.stop(t)
		})
	}
}

// What is switched off stays off, whatever is there; and then, as without any
// deliveries, /v1 is a prefix like any other.
func TestNoDelivery(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "policy.yaml"), egressPolicy(upstream(t), "/v1", ""))
	p := startProcess(t, folder, "022", "--config", "policy.yaml", "--admin", "off")
	if code, body := get(t, p.base+"/v1/endpoints"); code != 200 || body != "up /endpoints" {
		t.Errorf("the route /v1: %d %s", code, body)
	}
	p.stop(t)
	if strings.Contains(p.log.String(), "a database is here") {
		t.Errorf("a warning of a database that is not there: %s", p.log.String())
	}
	out, err := command(t, folder, "022", "--config", "policy.yaml", "--admin", "off", "--database", "forbear.db").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--api") || !strings.Contains(string(out), "--no-delivery") || !strings.Contains(string(out), "--database") {
		t.Errorf("the route /v1 with deliveries: %v: %s", err, out)
	}
	write(t, filepath.Join(folder, "forbear.db"), "")
	p = startProcess(t, folder, "022", "--config", "policy.yaml", "--admin", "off")
	if code, body := get(t, p.base+"/v1/endpoints"); code != 200 || body != "up /endpoints" || !strings.Contains(p.log.String(), "a database is here, but nothing asks for deliveries") {
		t.Errorf("a file that is there is a setting, or has no warning: %d %s: %s", code, body, p.log.String())
	}
	p.stop(t)
	p = startProcess(t, folder, "022", "--config", "policy.yaml", "--admin", "off", "--no-delivery")
	if code, _ := get(t, p.base+"/v1/endpoints"); code != 200 || !strings.Contains(p.greeting, "deliveries: off by --no-delivery\n") {
		t.Errorf("switched off: %d, %s", code, p.greeting)
	}
	p.stop(t)
}

// A reload may ask for what only a start begins: the log says so.
func TestReloadThatAsksForDeliveries(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "policy.yaml")
	url := upstream(t)
	write(t, path, egressPolicy(url, "/search", ""))
	p := startProcess(t, folder, "022", "--config", "policy.yaml", "--admin", "off", "--reload-every", "10ms")
	write(t, path, egressPolicy(url, "/search", "")+keyedRoute)
	for range 6000 {
		if strings.Contains(p.log.String(), "restart to switch them on") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.stop(t)
	if log := p.log.String(); !strings.Contains(log, "restart to switch them on") || !strings.Contains(log, "idempotency keys in the policy file") {
		t.Errorf("the log: %s", log)
	}
	if mode := modes(t, folder)["forbear.db"]; mode != 0o600 {
		t.Errorf("the records' database has mode %v", mode)
	}
}
