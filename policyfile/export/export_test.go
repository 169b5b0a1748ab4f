//forbear:plain it drives nginx and HAProxy
package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
	"github.com/forbear-go/forbear/policyfile/export/internal/shapetest"
)

// policies are what is written for every software, by name. The tests with the
// products' own parsers, in interop, read the same file.
func policies(t *testing.T) (all map[string]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/policies.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("no policies: %v", err)
	}
	return all
}

func dependency(t *testing.T, text string) *policyfile.Dependency {
	t.Helper()
	f, err := policyfile.Parse("p.yaml", []byte("service: a\ndependencies:\n  payments: "+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &f.Dependencies[0]
}

// extensions are those under which check reads what is written.
var extensions = map[string]string{"nginx": ".conf", "haproxy": ".cfg", "grpc": ".json", "resilience4j": ".yml"}

// blind is the software that does not see the codes of gRPC.
var blind = []string{"nginx", "haproxy", "resilience4j", "gatewayapi"}

// written calls test with each policy, written for a software. The refusals are those
// that are to be had.
func written(t *testing.T, format string, test func(t *testing.T, s shapetest.Shape, d *policyfile.Dependency, out *Export)) {
	t.Helper()
	all := shapetest.All(ringtest.Size(60, 200))
	for _, text := range policies(t) {
		all = append(all, shapetest.Shape{Name: "payments", Text: text})
	}
	count := 0
	for _, s := range all {
		t.Run(format+" "+s.Name+" "+s.Text, func(t *testing.T) {
			f, err := policyfile.Parse("p.yaml", s.File())
			if err != nil {
				t.Fatal(err)
			}
			d := &f.Dependencies[0]
			out, err := Write(format, d)
			refused := d.Policy.Kind == forbear.GRPC && slices.Contains(blind, format) ||
				strings.Contains(d.URL, "[") && (format == "istio" || format == "linkerd")
			if (err != nil) != refused {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				count++
				test(t, s, d, out)
			}
		})
	}
	if count < len(all)/2 {
		t.Errorf("%d were written for %s", count, format)
	}
}

// What is written is known to check, which finds nothing in it that the list of
// losses does not name, but for what it finds in the policy.
func TestRoundTrips(t *testing.T) {
	for _, format := range Formats() {
		written(t, format, func(t *testing.T, s shapetest.Shape, d *policyfile.Dependency, out *Export) {
			if again, err := Write(format, d); err != nil || string(again.Config) != string(out.Config) {
				t.Errorf("the second time: %v\n%s", err, again.Config)
			}
			for i, l := range out.Losses { // in the comments as beside the file
				_, after, ok := strings.Cut(string(out.Config), l.String())
				if format != "grpc" && (!ok || i+1 < len(out.Losses) && !strings.Contains(after, out.Losses[i+1].String())) {
					t.Errorf("%q is not in its place above\n%s", l, out.Config)
				}
			}
			known := map[string]bool{}
			for _, f := range check.Run(check.ReadAll([]check.Input{{Name: "p.yaml", Data: s.File()}}).Sources, check.Options{}).Findings {
				known[f.ID] = true
			}
			ext := cmp.Or(extensions[format], ".yaml")
			read := check.ReadAll([]check.Input{{Name: "out" + ext, Data: out.Config}})
			if err := read.Err(); err != nil || len(read.Sources) != 1 || read.Sources[0].File.Format != format || read.Units() == 0 {
				t.Fatalf("check reads %d units of %+v: %v\n%s", read.Units(), read.Sources, err, out.Config)
			}
			for _, f := range check.Run(read.Sources, check.Options{}).Findings {
				named := known[f.ID] || slices.ContainsFunc(out.Losses, func(l Loss) bool { return l.Rule == f.Standard })
				if !named && (f.Severity == report.Error || f.ID == "FC002") {
					t.Errorf("%s:%d: %s [%s %s] is no loss that is named\n%s", f.File, f.Line, f.Message, f.ID, f.Standard, out.Config)
				}
			}
		})
	}
}

// nginx and HAProxy take what is written for them.
func TestProxiesAccept(t *testing.T) {
	for _, format := range []string{"nginx", "haproxy"} {
		tool := product(t, format)
		written(t, format, func(t *testing.T, _ shapetest.Shape, d *policyfile.Dependency, out *Export) {
			path := filepath.Join(t.TempDir(), "conf")
			args, config := []string{"-c", "-f", path}, string(out.Config)
			if format == "nginx" {
				if d.URL == "" { // which it looks up as it starts
					config = strings.Replace(config, "server "+d.Name+":", "server localhost:", 1)
				}
				args = []string{"-t", "-e", "stderr", "-g", "pid /dev/null;", "-c", path}
				config = "events {}\nhttp {\n" + config + "}\n"
			}
			if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s\n%s", err, said, config)
			}
		})
	}
}

// losses joins what is lost under a rule.
func losses(out *Export, rule string) string {
	var texts []string
	for _, l := range out.Losses {
		if l.Rule == rule {
			texts = append(texts, l.String())
		}
	}
	return strings.Join(texts, "\n")
}

// body is a configuration without the comments above it.
func body(out *Export) string {
	config := string(out.Config)
	for strings.HasPrefix(config, "#") {
		_, config, _ = strings.Cut(config, "\n")
	}
	return config
}

func write(t *testing.T, format, text string) *Export {
	t.Helper()
	out, err := Write(format, dependency(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a policy says of keys is what is written, or named as lost.
func TestKeys(t *testing.T) {
	for _, format := range []string{"envoy", "istio", "haproxy"} {
		if out := write(t, format, "{owner: a, idempotency: refuse}"); strings.Contains(string(out.Config), "idempotency-key") {
			t.Errorf("%s: writes with a key are retried, which the policy refuses\n%s", format, out.Config)
		}
		if out := write(t, format, "{owner: a, idempotency: reuse}"); !strings.Contains(string(out.Config), "idempotency-key") {
			t.Errorf("%s: writes with a key are not told from others\n%s", format, out.Config)
		}
		if out := write(t, format, "{owner: a, idempotency: generate}"); !strings.Contains(losses(out, "R-6"), "no idempotency key is made") {
			t.Errorf("%s loses %q", format, out.Losses)
		}
	}
	// These send a write again that could not be sent, whatever the policy says.
	for _, format := range []string{"nginx", "haproxy"} {
		if out := write(t, format, "{owner: a, idempotency: refuse}"); !strings.Contains(losses(out, "R-6"), "only if they were not sent") {
			t.Errorf("%s loses %q", format, out.Losses)
		}
	}
	if out := write(t, "linkerd", "{owner: a, idempotent: true}"); strings.Contains(losses(out, "R-6"), "not retried") {
		t.Errorf("linkerd loses %q, and retries POST", out.Losses)
	}
}

// What the policy retries is what is retried, or named as lost.
func TestClasses(t *testing.T) {
	const classes = "{owner: a, idempotency: reuse, classify: {http_503: terminal, http_404: retry, http_512: retry, connection_reset: terminal}}"
	for _, format := range []string{"envoy", "istio", "nginx", "haproxy", "resilience4j"} {
		out := write(t, format, classes)
		config := body(out)
		lost := losses(out, "R-4")
		if strings.Contains(config, "503") || strings.Contains(config, "ServiceUnavailable") {
			t.Errorf("%s retries 503\n%s", format, config)
		}
		if !strings.Contains(config, "404") && !strings.Contains(config, "NotFound") {
			t.Errorf("%s does not retry 404, which it could\n%s", format, config)
		}
		if !strings.Contains(config, "512") && !strings.Contains(lost, "512") {
			t.Errorf("%s loses %q", format, lost)
		}
		if !strings.Contains(lost, "no setting for connection_reset") {
			t.Errorf("%s loses %q", format, lost)
		}
	}
	const calls = "{owner: a, kind: grpc, classify: {grpc_UNAVAILABLE: terminal, grpc_INTERNAL: retry}}"
	if out := write(t, "grpc", calls); strings.Contains(string(out.Config), "UNAVAILABLE") || !strings.Contains(string(out.Config), "INTERNAL") {
		t.Errorf("got %s", out.Config)
	}
	for _, format := range []string{"envoy", "istio"} {
		out := write(t, format, calls)
		config := string(out.Config)
		if strings.Contains(config, "unavailable") || !strings.Contains(config, ",internal") || !strings.Contains(losses(out, "R-4"), "ABORTED") {
			t.Errorf("%s: got %s", format, config)
		}
	}
}

// Where a dependency is comes from the file alone, in the notation of each software.
func TestPlaces(t *testing.T) {
	f, err := policyfile.Parse("p.yaml", []byte("service: a\ndependencies:\n  pay: {owner: a, url: '"+policyfile.FromEnvironment+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"envoy", "istio", "nginx", "haproxy", "linkerd"} {
		out, err := Write(format, &f.Dependencies[0])
		if err != nil || strings.Contains(string(out.Config), "environment.invalid") || !strings.Contains(string(out.Config), "the name pay stands for it") {
			t.Errorf("%s: %v\n%s", format, err, out.Config)
		}
	}
	const several = "{owner: a, url: 'https://pay.example', endpoints: ['10.0.0.1:8443', '[::1]:8443'], tls: {server_name: pay.internal, ca: /etc/pay.pem}}"
	for format, wants := range map[string][]string{
		"nginx":   {"server 10.0.0.1:8443 ", "server [::1]:8443 ", "proxy_ssl_name pay.internal;", "certificate /etc/pay.pem;"},
		"haproxy": {"server payments 10.0.0.1:8443 ", "server payments-2 [::1]:8443 ", "verifyhost pay.internal", "ca-file /etc/pay.pem"},
		"envoy":   {`address: "10.0.0.1",`, `address: "::1", port_value: 8443`, "sni: pay.internal", `filename: "/etc/pay.pem"`},
	} {
		out := write(t, format, several)
		for _, want := range wants {
			if !strings.Contains(string(out.Config), want) {
				t.Errorf("%s: no %s\n%s", format, want, out.Config)
			}
		}
	}
	// What would end a word of the configuration is no host.
	for _, url := range []string{"http://a;b", "http://a,b", "http://ü.example", "http://a:70000", "http://a:0"} {
		if out, err := Write("nginx", dependency(t, "{owner: a, url: '"+url+"'}")); err == nil {
			t.Errorf("%s is written\n%s", url, out.Config)
		}
	}
}

// What stops calls and what spaces retries is written, or named as lost.
func TestGuards(t *testing.T) {
	for _, c := range []struct{ format, policy, rule, want string }{
		{"envoy", "", "R-7", "no circuit breaker, no pacing after 429s; instead"},
		{"linkerd", ", disabled: true", "R-7", "no circuit breaker, no pacing after 429s; instead"},
		{"istio", ", health: {min_success: 50%}, max_concurrent: 10, breaker: {disabled: true}", "R-7", "no health gate, no limit of concurrent calls, no pacing after 429s; instead"},
		{"resilience4j", ", breaker: {disabled: true}", "R-7", "only the count bounds them"},
		{"linkerd", "", "R-3", "no timeout for one attempt"},
		{"nginx", "", "R-3", "when the last try starts"},
		{"envoy", ", backoff: {schedule: [0s, 1s, 2s, 4s]}", "R-1", "no schedule of waits"},
		{"istio", ", backoff: {jitter: decorrelated}", "R-1", "no decorrelated jitter"},
		{"istio", ", wait_headers: {X-B: unix, X-A: seconds}", "R-5", "the wait in X-A, X-B is not read"},
		{"nginx", ", wait_headers: {X-A: seconds}", "R-5", "the wait in X-A is not read"},
		{"envoy", ", wait_headers: {X-B: unix, X-A: seconds, X-C: duration}", "R-5", "the wait in X-C is not read"},
	} {
		if out := write(t, c.format, "{owner: a, idempotency: reuse"+c.policy+"}"); !strings.Contains(losses(out, c.rule), c.want) {
			t.Errorf("%s with %q loses %q under %s, want %q", c.format, c.policy, losses(out, c.rule), c.rule, c.want)
		}
	}
	if out := write(t, "resilience4j", "{owner: a, breaker: {disabled: true}}"); strings.Contains(string(out.Config), "circuitbreaker") {
		t.Errorf("a breaker that the policy does not have\n%s", out.Config)
	}
	named := write(t, "envoy", "{owner: a, wait_headers: {X-B: unix, X-A: seconds}}")
	if want := "reset_headers: [{name: Retry-After, format: SECONDS}, {name: X-A, format: SECONDS}, {name: X-B, format: UNIX_TIMESTAMP}]"; !strings.Contains(string(named.Config), want) {
		t.Errorf("no %s\n%s", want, named.Config)
	}
	// A longer Retry-After than Envoy heeds would be asked earlier.
	if out := write(t, "envoy", "{owner: a, backoff: {cap: 2s}}"); !strings.Contains(string(out.Config), "max_interval: 86400s") {
		t.Errorf("got %s", out.Config)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := Write("apache", dependency(t, "{owner: a}")); err == nil || !strings.Contains(err.Error(), "want envoy, istio") {
		t.Errorf("got %v", err)
	}
	if _, err := Write("envoi", dependency(t, "{owner: a}")); err == nil || !strings.Contains(err.Error(), "did you mean envoy?") {
		t.Errorf("got %v", err)
	}
	d := dependency(t, "{owner: a, kind: batch}")
	if _, err := Write("envoy", d); err == nil || !strings.Contains(err.Error(), "payments has kind batch") {
		t.Errorf("got %v", err)
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{1500 * time.Millisecond: "1500ms 1.5s", 2 * time.Second: "2s 2s", 24 * time.Hour: "86400s 86400s"} {
		if got := fmt.Sprint(milliseconds(d), " ", seconds(d)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A service of Kubernetes has a name that begins with a letter, of 63 characters at most.
func TestLabels(t *testing.T) {
	for name, want := range map[string]string{"pay": "pay", "9-pay": "s-9-pay", "Pay_1.x": "pay-1-x"} {
		if got := label(name); got != want {
			t.Errorf("label(%q) = %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("a", 64)
	if got := label(long); len(got) > 63 || got == label(long+"b") {
		t.Errorf("label of 64 letters is %q", got)
	}
}

// TestEnvoyKeepsAsMuchOfABody: Envoy gets the highest body limit of the routes to a
// dependency, once, and only where something is retried.
func TestEnvoyKeepsAsMuchOfABody(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		", body_limit: 9MiB": "              request_body_buffer_limit: 9437184\n",
	} {
		for _, more := range []string{"", ", disabled: true"} {
			f, err := policyfile.Parse("p.yaml", []byte("service: a\ndependencies:\n  files: {url: http://files.internal"+more+"}\n  other: {url: http://other.internal}\n"+
				"gateway: {routes: [{prefix: /a, dependency: files, body_limit: 1MiB}, {prefix: /b, dependency: files"+text+"}, {prefix: /c, dependency: other, body_limit: 20MiB}]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := Write("envoy", &f.Dependencies[0])
			if err != nil {
				t.Fatal(err)
			}
			want := cmp.Or(want, "              request_body_buffer_limit: 1048576\n")
			if got := strings.Count(string(out.Config), want); got != 1 && more == "" {
				t.Errorf("%q is there %d times in\n%s", want, got, out.Config)
			}
			if more != "" && strings.Contains(string(out.Config), "buffer_limit") {
				t.Errorf("nothing is retried, and still there is a limit in\n%s", out.Config)
			}
			read := check.ReadAll([]check.Input{{Name: "out.yaml", Data: out.Config}})
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			for _, d := range read.Sources[0].File.Dependencies {
				if d.BodyLimit != f.Dependencies[0].BodyLimit {
					t.Errorf("check reads a limit of %d, want %d", d.BodyLimit, f.Dependencies[0].BodyLimit)
				}
			}
		}
	}
}
