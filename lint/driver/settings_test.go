package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/lint/settings"
)

// answers retries six times, on 404 and on 503.
const answers = `package PKG

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

func Fetch(c *http.Client, url string) (*http.Response, error) {
	for i := 0; i < 6; i++ {
		resp, err := c.Get(url)
		if err == nil {
			switch resp.StatusCode {
			case 403, 503:
				resp.Body.Close()
			default:
				return resp, nil
			}
		}
		time.Sleep(rand.N(time.Second << i))
	}
	return nil, errors.New("exhausted")
}
`

// services is a module with the same code for two dependencies.
func services(t *testing.T) string {
	return module(t, map[string]string{
		"pay/pay.go":       strings.Replace(answers, "PKG", "pay", 1),
		"search/search.go": strings.Replace(answers, "PKG", "search", 1),
	})
}

// TestSettings: what counts as too many attempts and as final is another for
// each dependency, by the settings.
func TestSettings(t *testing.T) {
	const onStatus = "retries http.Client.Get on status "
	tests := []struct {
		name, settings string
		want, not      []string
	}{
		{"none", "", []string{"pay.go:11:2: error: " + onStatus + "403", "search.go:11:2: error: " + onStatus + "403"}, []string{"FB1011"}},
		{
			"a dependency's own", "dependencies:\n- {name: pay, code: [pay/...], max_attempts: 3, retryable: [403], final: [503]}\n",
			[]string{"pay.go:11:2: error: " + onStatus + "503 [", "pay.go:11:2: warning: retries http.Client.Get up to 6 times; at most 3 attempts are allowed for pay", "search.go:11:2: error: " + onStatus + "403"},
			[]string{"search.go:11:2: error: " + onStatus + "503", "for search"},
		},
		{"for everything", "retryable: [403]\nmax_attempts: 5\n", []string{"pay.go:11:2: warning", "search.go:11:2: warning", "at most 5 attempts are allowed [FB1011 R-2"}, []string{"FB1035"}},
		{"disabled", "disable: [FB1035]\n", []string{"0 of them fail"}, []string{"FB1035"}},
		{"waiver", "waivers:\n- {id: W-1, rule: R-4, code: [pay/pay.go], reason: a vendor's quirk, expires: 2099-01-01}\n", []string{"search.go:11:2: error: " + onStatus + "403"}, []string{"pay.go:11:2: error", "lifts nothing"}},
		{"expired waiver", "waivers:\n- {id: W-1, rule: R-4, code: [pay/pay.go], reason: a vendor's quirk, expires: 2020-01-01}\n", []string{"pay.go:11:2: error", "waiver W-1 lifts nothing"}, nil},
		{"confidence", "confidence: medium\nmax_attempts: 5\n", []string{"search.go:11:2: error: retries http.Client.Get up to 6 times"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := services(t)
			write(t, dir, settings.FileName, tt.settings)
			_, out, errs := lintIn(t, dir)
			for _, want := range tt.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("got\n%s%s\nwant %q", out, errs, want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(out+errs, not) {
					t.Errorf("got\n%s%s\nwant no %q", out, errs, not)
				}
			}
		})
	}
}

// TestWaiverShown: what a waiver lifts can be shown, with its reason.
func TestWaiverShown(t *testing.T) {
	dir := services(t)
	write(t, dir, settings.FileName, "waivers:\n- {id: W-1, rule: FB1035, code: [./...], reason: a vendor's quirk, expires: 2099-01-01}\n")
	code, out, errs := lintIn(t, dir, "--show-suppressed")
	if code != ExitPass || !strings.Contains(out, "(suppressed: waiver W-1 until 2099-01-01: a vendor's quirk)") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	if _, out, _ := lintIn(t, dir, "--show-suppressed", "-o", "sarif"); !strings.Contains(out, `"kind": "external"`) {
		t.Errorf("got %s, want an external suppression", out)
	}
}

// TestCertificatesAreNotWaived: a waiver of R-4 lifts the statuses of FB1035,
// and not the certificates.
func TestCertificatesAreNotWaived(t *testing.T) {
	dir := module(t, map[string]string{"m.go": `package m

import (
	"crypto/x509"
	"errors"
)

func isRetryable(err error) bool {
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}
`})
	write(t, dir, settings.FileName, "waivers:\n- {rule: R-4, code: [...], reason: r, expires: 2099-01-01}\n- {rule: FB1035, code: [...], reason: r, expires: 2099-01-01}\n")
	if code, out, errs := lintIn(t, dir); code != ExitFindings || !strings.Contains(out, "certificate error retryable [FB1035 R-9") {
		t.Errorf("got %d\n%s%s\nwant the certificate error", code, out, errs)
	}
}

// TestPolicyReader: a policy that cannot be read keeps the run from judging;
// one that can be adds to the settings, and its notes are told.
func TestPolicyReader(t *testing.T) {
	dir := services(t)
	write(t, dir, "forbear.yaml", "")
	run := func(reader PolicyReader, args ...string) (int, string) {
		var out, errs strings.Builder
		t.Setenv("GOWORK", "off")
		code := Main(t.Context(), reader, append([]string{"-C", dir, "-q"}, args...), &out, &errs)
		return code, out.String() + errs.String()
	}
	bad := func(string, string) (*Policy, error) { return nil, errors.New("no such thing") }
	if code, out := run(bad); code != ExitUnjudged || !strings.Contains(out, "policy: no such thing") {
		t.Errorf("found in the root: got %d, %s", code, out)
	}
	if code, out := run(bad, "--policy", "none"); code != ExitFindings {
		t.Errorf("none: got %d, %s", code, out)
	}
	good := func(name, signers string) (*Policy, error) {
		p := &Policy{Notes: []string{"a note about " + name + " by " + signers}}
		p.Retryable = []string{"403"}
		return p, nil
	}
	if code, out := run(good, "--policy", "p.yaml", "--allowed-signers", "s"); code != ExitPass || !strings.Contains(out, "a note about p.yaml by s") {
		t.Errorf("given: got %d, %s", code, out)
	}
	if code, out := run(nil, "--policy", "p.yaml"); code != ExitUnjudged || !strings.Contains(out, "not defined: -policy") {
		t.Errorf("without a reader: got %d, %s", code, out)
	}
}
