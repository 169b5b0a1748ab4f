package listen

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/webhook"
)

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// A receiver shows what arrives in one line, and one more for the body.
func TestShows(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var signer webhook.Signer
	if err := signer.Add(secret); err != nil {
		t.Fatal(err)
	}
	signed := map[string]string{
		"Webhook-Id": "order-1", "Webhook-Timestamp": "1800000000", "X-Retry-Attempt": "2",
		"Webhook-Signature": signer.Sign("order-1", now, []byte(`{"order":1}`)),
	}
	other := "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4"
	for name, tt := range map[string]struct {
		secrets []string
		fail    int
		header  map[string]string
		body    string
		status  int
		want    string
	}{
		"plain":            {body: "x", status: 200, want: "POST /hook  attempt 1  200\n  x\n"},
		"no body":          {status: 200, want: "POST /hook  attempt 1  200\n"},
		"a key":            {header: map[string]string{"Idempotency-Key": "k"}, status: 200, want: "POST /hook  key k  attempt 1  200\n"},
		"valid":            {secrets: []string{other, secret}, header: signed, body: `{"order":1}`, status: 200, want: "POST /hook  id order-1  attempt 3  signature valid  200\n  {\"order\":1}\n"},
		"changed":          {secrets: []string{secret}, header: signed, body: `{"order":2}`, status: 200, want: "POST /hook  id order-1  attempt 3  signature INVALID: no signature matches  200\n  {\"order\":2}\n"},
		"not checked":      {header: signed, status: 200, want: "POST /hook  id order-1  attempt 3  signature not checked (--secret)  200\n"},
		"not signed":       {header: map[string]string{"Webhook-Id": "a"}, status: 200, want: "POST /hook  id a  attempt 1  signature missing: the endpoint has no secrets  200\n"},
		"fails":            {fail: 3, header: signed, status: 503, want: "POST /hook  id order-1  attempt 3  signature not checked (--secret)  503\n"},
		"no more fails":    {fail: 2, header: signed, status: 200, want: "POST /hook  id order-1  attempt 3  signature not checked (--secret)  200\n"},
		"escape sequences": {header: map[string]string{"Webhook-Id": "a\x1b[2J"}, body: "\x1b[31mred\r\n", status: 200, want: "POST /hook  id " + cli.Printable("a\x1b[2J") + "  attempt 1  signature missing: the endpoint has no secrets  200\n  " + cli.Printable("\x1b[31mred\r\n") + "\n"},
		"long":             {body: strings.Repeat("x", 500), status: 200, want: "POST /hook  attempt 1  200\n  " + strings.Repeat("x", 400) + "... (500 bytes)\n"},
		"too large":        {body: strings.Repeat("x", maxBody+1), status: 400, want: "POST /hook  the body did not arrive: http: request body too large  400\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := &receiver{out: &out, secrets: tt.secrets, fail: tt.fail, status: http.StatusServiceUnavailable, now: func() time.Time { return now }}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook", strings.NewReader(tt.body))
			for name, value := range tt.header {
				req.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			if w.Code != tt.status || out.String() != tt.want {
				t.Errorf("got %d %q, want %d %q", w.Code, out.String(), tt.status, tt.want)
			}
			if strings.ContainsRune(out.String(), '\x1b') {
				t.Error("a terminal would obey it")
			}
		})
	}
}

// A mistake in the command line is told with what to do, and never with the secret.
func TestRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for want, args := range map[string][]string{
		"choose another address with --listen":      {"--listen", l.Addr().String()},
		"FORBEAR_SECRET_NOPE is not set: export it": {"--secret", "env:NOPE"},
		"whpk_, or env:NAME or file:PATH":           {"--secret", "hunter2"},
		"invalid secret":                            {"--secret", "whsec_hunter2"},
		"invalid public key: want whpk_":            {"--secret", "whpk_hunter2"},
		"no such file or directory":                 {"--secret", "file:" + filepath.Join(t.TempDir(), "none")},
		"want HOST:PORT, such as 127.0.0.1:9001":    {"--listen", "9001"},
		"--status is 99: want 200 to 599":           {"--status", "99"},
		"unexpected argument \"9001\"":              {"9001"},
	} {
		r := clitest.Run(t, Command(), "", args...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Errors, want) || strings.Contains(r.Errors, "hunter2") {
			t.Errorf("listen %q: got %d %q, want %q", args, r.Code, r.Errors, want)
		}
	}
}

// A secret may come without its prefix and padding, and a public key is one to check with.
func TestResolves(t *testing.T) {
	_, public := webhook.NewKeyPair()
	for _, given := range []string{secret, strings.TrimPrefix(secret, "whsec_"), "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo", public} {
		if got, err := resolve(given); got != given || err != nil {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
}

// Listen ends with its context, with success.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	if code := Command().Run(ctx, &cli.Streams{Out: &out, Err: &errs}, []string{"--listen", "127.0.0.1:0"}); code != cli.ExitOK {
		t.Errorf("got %d, %s", code, errs.String())
	}
}
