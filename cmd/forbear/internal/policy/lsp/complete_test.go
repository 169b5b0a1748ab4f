package lsp

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile/check"
)

// placed is a policy file with a cursor, which | stands for.
func placed(t *testing.T, text string) (*document, position) {
	t.Helper()
	before, after, ok := strings.Cut(text, "|")
	if !ok {
		t.Fatalf("no cursor in %q", text)
	}
	d := newDocument("file:///srv/forbear.yaml")
	d.update(before+after, check.Options{})
	lines := split(before)
	last := lines[len(lines)-1]
	return d, position{len(lines) - 1, units(last)}
}

func TestCompletion(t *testing.T) {
	const jwt = "gateway:\n  routes:\n  - idempotency:\n      principal:\n        jwt: "
	for _, tt := range []struct {
		name, text string
		// want are the first new texts in a row; "" is for none at all.
		want string
	}{
		{"at the top", "|", "$schema: ,consumers:,dependencies:,gateway:"},
		{"at the top, behind", "service: a\ndependencies:\n  b: {owner: a}\ng|\n", "$schema: ,consumers:,gateway:,idempotency:"},
		{"a name of the user's", "dependencies:\n  |\n", ""},
		{"on an empty line", "dependencies:\n  b:\n    backoff:\n      |\n", "base: ,cap: ,jitter: ,schedule:"},
		{"not those that are there", "dependencies:\n  b:\n    backoff:\n      base: 1s\n      |\n      cap: 2s\n", "jitter: ,schedule:"},
		{"by its indentation", "dependencies:\n  b:\n    backoff:\n      base: 1s\n  c:\n    backoff:\n      j|", "base: ,cap: ,jitter: ,schedule:"},
		{"in brackets", "dependencies: {b: {backoff: {|}}}", "base: ,cap: ,jitter: ,schedule: "},
		{"in brackets, behind", "dependencies: {b: {backoff: {base: 1s, ca|}}}", "cap: ,jitter: ,schedule: "},
		{"in brackets over lines", "dependencies: {\n  b: {backoff: {base: 1s,\n c|", "cap: ,jitter: ,schedule: "},
		{"behind brackets that are closed", "dependencies:\n  b: {backoff: {base: 1s}, budget: {of: |}}", "initial,total"},
		{"values", "dependencies:\n  b:\n    kind: |\n", "sync,grpc,event,webhook,batch"},
		{"values, right at the colon", "dependencies:\n  b:\n    kind:|", " sync, grpc, event"},
		{"values that are begun", "dependencies:\n  b: {strict: f|alse}", "true,false"},
		{"values by any name", "profiles:\n  b: {classify: {http_404: |}}", "transient,timeout,throttled"},
		{"values of a list", "dependencies:\n  b: {methods: [GET, P|]}", "GET,HEAD,OPTIONS,PUT"},
		{"values of a list, line by line", "dependencies:\n  b:\n    methods:\n    - |", "GET,HEAD,OPTIONS,PUT"},
		{"one of several forms", "gateway:\n  access_log: |", "on,off,true,false"},
		{"an item", "waivers:\n- rule: R-2\n  re|\n", "approvals:,code:,created: ,dependency: "},
		{"an item's first key", "waivers:\n- |\n", "approvals:,code:,created: ,dependency: "},
		{"behind an item", "waivers:\n- rule: R-2\n  lifts: [a]\n- rule: |\n", "R-1,R-2,R-3"},
		{"in front of a colon", "dependencies:\n  b: {back|off: {}}", "backoff,body_idle,breaker"},
		{"deep", jwt + "{|}", "audience: ,claim: ,issuer: ,keys: "},
		{"JSON", "{\"dependencies\": {\"b\": {\"backoff\": {\"|\"}}}}", `"base": ,"cap": ,"jitter": ,"schedule": `},
		{"JSON's values", "{\"dependencies\": {\"b\": {\"kind\": |}}}", `"sync","grpc"`},
		{"behind an anchor", "profiles:\n  p: &p\n    backoff: &b {|", "base: ,cap: "},
		{"in a comment", "dependencies:\n  b: # {|", ""},
		{"in a text", "dependencies:\n  b:\n    other_layers: |\n      none\n      |\n", ""},
		{"behind a text", "dependencies:\n  b:\n    other_layers: >\n      kind: 1\n    backoff:\n      |", "base: ,cap: "},
		{"a number", "dependencies:\n  b: {max_retries: |}", ""},
		{"an unknown key", "dependencies:\n  b: {max_retires: {|}}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if tt.name == "in a text" { // whose own | is no cursor
				text = strings.Replace(text, "layers: |", "layers: >", 1)
			}
			d, at := placed(t, text)
			var got []string
			for _, i := range d.complete(at) {
				got = append(got, i.TextEdit.NewText)
			}
			if all := strings.Join(got, ","); !strings.HasPrefix(all, tt.want) || tt.want == "" && all != "" {
				t.Errorf("got %q, want %q first", all, tt.want)
			}
		})
	}
}

// What is taken replaces the whole word, and not what was typed of it alone.
func TestCompletionReplacesTheWord(t *testing.T) {
	d, at := placed(t, "dependencies:\n  \"🏦\": {back|off: {}}")
	got := d.complete(at)
	if len(got) == 0 {
		t.Fatal("nothing")
	}
	if want := (span{position{1, 9}, position{1, 16}}); got[0].TextEdit.Range != want {
		t.Errorf("got %v, want %v", got[0].TextEdit.Range, want)
	}
}

func TestHover(t *testing.T) {
	for text, want := range map[string]string{
		"dependencies:\n  b: {max_|retries: 2}":                 "**max\\_retries**: integer\n\nretries after the first attempt (R-2); not for webhooks\n\nDefault: `3`",
		"consumers:\n  b:\n    max_retries|: 2":                 "Default: `5`",
		"webhooks:\n  b: {backoff: {|schedule: [0s]}}":          "Default: `[0s, 1s, 5s, 30s, 2m, 15m, 1h, 4h]`",
		"dependencies:\n  b: {kind: sync, |idempotency: reuse}": "Values: `reuse`, `generate`, `refuse`",
		"serv|ice: a": "**service**: string",
		"dependencies:\n  strict: {owner: a, strict: tr|ue}":                            "",
		"dependencies:\n  stri|ct: {owner: a, strict: true, methods: [GET]}":            "",
		"dependencies:\n  b: {owner: a, methods: [GET], strict: true, max_retries: |9}": "**FC201** (R-2): b: max\\_retries 9 is outside 1-5\n\n",
		"dependencies:\n  b: {max_re|tires: 2}":                                         "",
	} {
		d, at := placed(t, text)
		got := ""
		if h := d.hover(at); h != nil {
			got = h.Contents.Value
		}
		if !strings.Contains(got, want) || want == "" && got != "" && !strings.HasPrefix(got, "**FC") {
			t.Errorf("%q: got %q, want %q in it", text, got, want)
		}
	}
}

// A file stays a policy file while it cannot be parsed, and is none once it is
// another's.
func TestRecognition(t *testing.T) {
	d := newDocument("file:///srv/a.yaml")
	for _, tt := range []struct {
		text   string
		policy bool
	}{
		{"", false},
		{"# yaml-language-server: $schema=https://raw.githubusercontent.com/forbear-go/forbear/main/policyfile/schema.json\n", true},
		{"service: a\ndependencies:\n  b: {owner: a}\n", true},
		{"service: a\ndependencies:\n  b: {owner\nx", true},
		{meshText, false},
		{"apiVersion: v1\nkind: ConfigMap\ndata:\n  policy.yaml: |\n    service: a\n    dependencies:\n      b: {owner: a}\n", false},
	} {
		if d.update(tt.text, check.Options{}); d.policy != tt.policy {
			t.Errorf("%q: got %v", tt.text, d.policy)
		}
	}
}

// Whatever is written, and wherever the cursor stands, there is an end to it, and
// every range lies in the text.
func FuzzPlaces(f *testing.F) {
	for _, seed := range []string{
		policyText, meshText, "", "waivers:\n- rule: R-2\n  files: [a, {b: [c]}]\n- - x: |\n    y\n", "{\"a\": [\"b\", {\"c\": 1}]}", "a: {b: [}, ]: c\n",
		"? a\n: b\n", "- - - {[:,#'\"", "a: 'it''s' # x\n\"b\\\"c\": &d !e {f: *g}\r\nh: >-\r\n  i: j\r", "\ufeffservice: 🏦\n\t- x\n---\n...\n",
		"upstream a { server b:1; }\nserver { location / { proxy_next_upstream error; proxy_pass http://a; } }\n",
	} {
		f.Add(seed, 3, 7)
	}
	f.Fuzz(func(t *testing.T, text string, line, character int) {
		if len(text) > 20_000 {
			return
		}
		text = strings.ToValidUTF8(text, "\ufffd") // as the protocol's JSON is
		for _, name := range []string{"forbear.yaml", "other.conf"} {
			d := newDocument("file:///srv/" + name)
			inside := func(s span) {
				end := units(d.line(s.Start.Line))
				if s.Start.Line != s.End.Line || s.Start.Line < 0 || s.Start.Line >= len(d.lines) || s.Start.Character < 0 ||
					s.End.Character < s.Start.Character || s.End.Character > end {
					t.Errorf("%q: %v leaves the text", text, s)
				}
			}
			for _, found := range d.update(text, check.Options{}) {
				inside(found.Range)
			}
			for _, at := range []position{{line, character}, {max(line, 0) % len(d.lines), character}} {
				if h := d.hover(at); h != nil && h.Range != nil {
					inside(*h.Range)
				}
				for _, i := range d.complete(at) {
					inside(i.TextEdit.Range)
				}
			}
		}
	})
}
