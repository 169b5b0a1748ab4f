package lsp

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests see into testdata")

const policyText = `service: checkout
dependencies:
  payments:
    owner: "Zürich 🏦"
    idempotency: reuse
    methods: [GET]
    max_retries: 9
    backoff: {base: 10s, }
  search: {owner: checkout, strict: true, methods: [GET]}
`

const meshText = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: payments}
spec:
  hosts: [payments]
  http:
  - route: [{destination: {host: payments}}]
    timeout: 30s
    retries: {attempts: 9, perTryTimeout: 2s}
`

// What an editor and the server say to each other, from the first message to the
// last: go test -update writes it.
func TestTranscript(t *testing.T) {
	c := connect(t, Options{})
	c.start()
	const uri = "file:///srv/checkout/policy.yaml"
	c.open(uri, policyText)
	c.ask("hover", uri, 6, 8)
	c.ask("hover", uri, 3, 20)
	c.ask("completion", uri, 7, 25)
	c.change(uri, policyText+"waivers:\n- rule: R-2\n  re\n")
	c.ask("completion", uri, 11, 4)
	c.change(uri, strings.Replace(policyText, "reuse", "", 1))
	c.ask("completion", uri, 4, 17)
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri}})
	c.next()
	c.call("shutdown", nil)
	c.notify("exit", nil)
	if err := c.ended(); err != nil {
		t.Errorf("got %v", err)
	}
	const path = "testdata/transcript.txt"
	if *update {
		if err := os.WriteFile(path, c.transcript.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.transcript.String(); got != string(want) {
		gots, wants := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(gots), len(wants)) {
			if gots[i] != wants[i] {
				t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, gots[i], wants[i])
			}
		}
		t.Fatalf("got %d lines, want %d", len(gots), len(wants))
	}
}

// ranges are the findings with the texts that they mark.
func ranges(text string, found []any) (marked []string) {
	lines := split(text)
	for _, f := range found {
		d := f.(map[string]any)
		r := d["range"].(map[string]any)
		start, end := r["start"].(map[string]any), r["end"].(map[string]any)
		line := lines[int(start["line"].(float64))]
		code, _ := d["code"].(string)
		part := line[offset(line, int(start["character"].(float64))):offset(line, int(end["character"].(float64)))]
		marked = append(marked, strings.TrimSpace(fmt.Sprintf("%v %s %s", d["severity"], code, part)))
	}
	return marked
}

func TestDiagnostics(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"a rule", "p.yaml", "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET], max_retries: 9, per_attempt: 100ms, total: 20s, backoff: {cap: 1s}}\n", []string{"1 FC201 9", "1 FC204 1s"}},
		{"behind two units", "p.yaml", "service: a\ndependencies:\n  b: {owner: \"🏦\", strict: true, methods: [GET], total: 45s}\n", []string{"1 FC202 45s"}},
		{"a fault", "p.yaml", "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET], max_retires: 9}\n", []string{"1  max_retires"}},
		{"not YAML", "forbear.yaml", "service: a\n\tb: c\n", []string{"1  \tb"}},
		{"another's file", "p.yaml", "retries: 3\n", nil},
		{"declared by its name", "checkout.forbear.yaml", "", []string{"1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t, Options{})
			c.start()
			got := ranges(tt.text, c.open("file:///srv/"+tt.file, tt.text))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The files of other software have diagnostics, with what their rules say, and
// nothing of the keys of a policy file.
func TestOtherSoftware(t *testing.T) {
	c := connect(t, Options{})
	c.start()
	const uri = "file:///srv/mesh/payments.yaml"
	if got := ranges(meshText, c.open(uri, meshText)); !slices.Contains(got, "1 FC201 9") {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(c.ask("hover", uri, 8, 16)); !strings.Contains(got, "FC201") || !strings.Contains(got, "Fix: ") || strings.Contains(got, "Default") {
		t.Errorf("got %s", got)
	}
	if got := c.ask("completion", uri, 8, 16).([]any); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// The settings of the repository hold in the editor as they do in the gate, by the
// path from their folder; faulty ones are shown.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".forbear-check.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET], max_retries: 5}\n"
	uri := "file://" + filepath.ToSlash(dir) + "/old/policy.yaml"
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := connect(t, Options{})
	c.start()
	write("comments: on\n")
	if got := ranges(text, c.open(uri, text)); len(got) != 1 || !strings.HasPrefix(got[0], "2 FC208 ") {
		t.Errorf("got %q", got)
	}
	write("paths: [{files: [\"old/**\"], severity: {FC208: \"off\"}}]\n")
	if got := c.change(uri, text); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	write("severity: {FC999: error}\n")
	if got := c.change(uri, text); len(got) != 2 || !strings.Contains(got[0].(map[string]any)["message"].(string), "FC999 is no finding") {
		t.Errorf("got %v", got)
	}
}

// A client that goes away in the right order, in another, or without a word.
func TestEnds(t *testing.T) {
	c := connect(t, Options{})
	c.start()
	c.notify("exit", nil)
	if err := c.ended(); !errors.Is(err, errNoShutdown) {
		t.Errorf("got %v", err)
	}
	for last, want := range map[string]error{
		"": nil, "Content-Length: 10\r\n\r\n{": nil, "Content-Length: 2\r\n\r\n[]": nil, "Content-Length: 4\r\n\r\nnull": nil,
		"nonsense\r\n\r\n": errHeader, "Content-Length: x\r\n\r\n": errHeader, "Content-Length: -1\r\n\r\n": errHeader,
		strings.Repeat("x", 5000) + "\r\n\r\n": errHeader,
	} {
		var said strings.Builder
		c := connect(t, Options{Log: &said})
		c.start()
		if _, err := c.to.WriteString(last); err != nil {
			t.Fatal(err)
		}
		_ = c.to.Close()
		if err := c.ended(); !errors.Is(err, want) {
			t.Errorf("%.40q: got %v", last, err)
		}
	}
}

// A message that cannot be read is said in the log, and ends nothing.
func TestBrokenMessages(t *testing.T) {
	var said strings.Builder
	c := connect(t, Options{Log: &said})
	c.start()
	broken := []string{"{x}", "[]", "", "null", "{}", `[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]`, `{"jsonrpc":"2.0","id":1,"method":5}`}
	for _, body := range broken {
		if _, err := fmt.Fprintf(c.to, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.open("file:///srv/policy.yaml", policyText); len(got) == 0 {
		t.Error("nothing is found afterwards")
	}
	_ = c.to.Close()
	if err := c.ended(); err != nil {
		t.Errorf("got %v", err)
	}
	if got := strings.Count(said.String(), "a message that cannot be read"); got != len(broken) {
		t.Errorf("%d in the log: %s", got, said.String())
	}
}

// What comes out of order, or is not known, gets an error, and ends nothing.
func TestErrors(t *testing.T) {
	c := connect(t, Options{})
	code := func(m map[string]any) any { e, _ := m["error"].(map[string]any); return e["code"] }
	c.notify("textDocument/didOpen", map[string]any{}) // dropped
	if got := code(c.call("textDocument/hover", map[string]any{})); got != -32002.0 {
		t.Errorf("before initialize: %v", got)
	}
	c.start()
	c.notify("$/cancelRequest", map[string]any{"id": 1})
	for method, want := range map[string]any{"initialize": -32600.0, "textDocument/rename": -32601.0, "$/other": -32601.0} {
		if got := code(c.call(method, map[string]any{})); got != want {
			t.Errorf("%s: got %v, want %v", method, got, want)
		}
	}
	if got := code(c.call("textDocument/hover", []any{1})); got != -32602.0 {
		t.Errorf("parameters of another kind: %v", got)
	}
	if got := code(c.call("textDocument/hover", nil)); got != -32602.0 {
		t.Errorf("no parameters: %v", got)
	}
	if got := c.ask("hover", "file:///not/open.yaml", 1, 1); got != nil {
		t.Errorf("of a document that is not open: %v", got)
	}
	c.call("shutdown", nil)
	if got := code(c.call("textDocument/hover", map[string]any{})); got != -32600.0 {
		t.Errorf("after shutdown: %v", got)
	}
}

// What is too large is not judged, and ends nothing.
func TestLimits(t *testing.T) {
	c := connect(t, Options{})
	c.start()
	const uri = "file:///srv/policy.yaml"
	large := "# " + strings.Repeat("x", maxDocument) + "\n" + policyText
	if got := c.open(uri, large); len(got) != 1 || !strings.Contains(got[0].(map[string]any)["message"].(string), "too large") {
		t.Errorf("got %d diagnostics", len(got))
	}
	go fmt.Fprintf(c.to, "Content-Length: %d\r\n\r\n%s", maxMessage+1, strings.Repeat(" ", maxMessage+1)+"Content-Length: 52\r\n\r\n"+`{"jsonrpc":"2.0","id":99,"method":"workspace/none" }`)
	if got := c.next(); got["id"] != 99.0 {
		t.Errorf("got %v", got)
	}
	if got := c.open(uri, policyText); len(got) == 0 {
		t.Error("nothing is found afterwards")
	}
}
