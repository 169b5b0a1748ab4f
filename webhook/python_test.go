package webhook

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPythonVerifies: the receiver's check in the guide, in Python, takes what is signed
// here, and nothing else.
func TestPythonVerifies(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/webhooks-receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(guide), "```python\n")
	program, _, _ = strings.Cut(program, "```\n")
	if !found {
		t.Fatal("the guide has no program in Python")
	}
	path := filepath.Join(t.TempDir(), "verify.py")
	program += "\nimport json, sys\nfor secret, headers, body in json.load(sys.stdin):\n    try: print(valid(secret, headers, body.encode()))\n    except ValueError: print('unusable')\n"
	if err := os.WriteFile(path, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret, other = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz", "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4"
	sign := func(at time.Time, secrets ...string) map[string]string {
		var s Signer
		for _, one := range secrets {
			if err := s.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		return map[string]string{"webhook-id": "m1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": s.Sign("m1", at, []byte(`{"n":1}`))}
	}
	now := time.Now()
	var calls []any
	var want strings.Builder
	padded := "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo="
	for _, tt := range []struct {
		secret  string
		headers map[string]string
		body    string
		want    string
	}{
		{secret, sign(now, secret), `{"n":1}`, "True"},
		{secret, sign(now, other, secret), `{"n":1}`, "True"}, // while it is rotated
		{secret, sign(now, other), `{"n":1}`, "False"},
		{secret, sign(now, secret), `{"n":2}`, "False"},
		{secret, sign(now.Add(-10*time.Minute), secret), `{"n":1}`, "False"},
		{secret, map[string]string{"webhook-id": "m1", "webhook-timestamp": strconv.FormatInt(now.Unix(), 10), "webhook-signature": ""}, `{"n":1}`, "False"},
		{padded, sign(now, padded), `{"n":1}`, "True"},
		{padded[6 : len(padded)-1], sign(now, padded), `{"n":1}`, "True"},
		{"", sign(now, secret), `{"n":1}`, "unusable"}, // with an empty key anyone could sign
		{"whsec_", sign(now, secret), `{"n":1}`, "unusable"},
		{secret + "!", sign(now, secret), `{"n":1}`, "unusable"},
	} {
		calls = append(calls, []any{tt.secret, tt.headers, tt.body})
		want.WriteString(tt.want + "\n")
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	python := exec.CommandContext(t.Context(), "python3", path)
	python.Stdin = strings.NewReader(string(input))
	if out, err := python.CombinedOutput(); err != nil || string(out) != want.String() {
		t.Errorf("got %s, %v; want %s", out, err, want.String())
	}
}
