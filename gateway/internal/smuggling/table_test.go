package smuggling

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/gateway-requests.md")

const page = "../../../docs/gateway-requests.md"

// section is a part of the page.
type section struct {
	title  string
	probes []probe
	// once runs the probes one way: they are about responses.
	once bool
}

// TestProbes runs every probe in every way.
func TestProbes(t *testing.T) {
	for _, s := range sections {
		for i := range s.probes {
			p := &s.probes[i]
			t.Run(s.title+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				for _, w := range ways {
					if s.once && w != ways[0] && !w.after {
						continue
					}
					t.Run(w.name, func(t *testing.T) {
						t.Parallel()
						p.run(t, w)
					})
				}
			})
		}
	}
}

// TestPage holds the page to the table.
func TestPage(t *testing.T) {
	text := render(t)
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != text {
		t.Errorf("%s is not the table's: run with -update", page)
	}
}

// render returns the page.
func render(t *testing.T) string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| probe | sent | verdict | the upstream gets | connection | why |\n|---|---|---|---|---|---|\n", s.title)
		names := map[string]bool{}
		for _, p := range s.probes {
			if names[p.name] {
				t.Errorf("two probes are called %q", p.name)
			}
			names[p.name] = true
			b.WriteString(p.row(s.once) + "\n")
		}
	}
	return b.String()
}

// row returns the probe's row of the page.
func (p *probe) row(response bool) string {
	sent := p.shown
	if sent == "" {
		text := p.send
		if response {
			text = strings.Join(p.replies, "")
		}
		text = strings.Replace(strings.ReplaceAll(text, hangUp, ""), "Host: gateway.test\r\n", "", 1)
		sent = code(text)
	}
	cells := []string{p.name, sent, p.want.String(), p.want.upstream(), p.want.conn.String(), p.why}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// code shows bytes: those that cannot be read as Go writes them.
func code(text string) string {
	if len(text) > 400 {
		text = text[:40] + "…"
	}
	quoted := fmt.Sprintf("%+q", text)
	quoted = strings.NewReplacer(`\"`, `"`, `\u2026`, "…").Replace(quoted[1 : len(quoted)-1])
	if strings.Contains(quoted, "`") {
		return "`` " + quoted + " ``"
	}
	return "`" + quoted + "`"
}

// String says what the caller gets.
func (v verdict) String() string {
	var parts []string
	for i, status := range v.status {
		if i > 0 && v.status[i-1] == status && len(v.status) > 8 {
			continue // a long row of one status
		}
		parts = append(parts, fmt.Sprint(status))
	}
	text := strings.Join(parts, ", ")
	switch {
	case text == "":
		text = "a response or none"
	case len(v.requests) == 0:
		text = "refused: " + text
	}
	if v.broken {
		text += ", broken off"
	}
	if v.body != nil {
		text += " " + code(*v.body)
	}
	for _, field := range v.fields {
		text += "; " + shown(field)
	}
	for _, field := range v.trailer {
		text += "; trailer " + shown(field)
	}
	return text
}

// upstream says what the upstream gets.
func (v verdict) upstream() string {
	if len(v.requests) == 0 {
		return "nothing"
	}
	var parts []string
	for _, r := range v.requests {
		var text strings.Builder
		text.WriteString(code(r.line))
		for _, field := range r.fields {
			text.WriteString("; " + shown(field))
		}
		if r.body != "" {
			text.WriteString("; body " + code(r.body))
		}
		for _, field := range r.trailer {
			text.WriteString("; trailer " + shown(field))
		}
		parts = append(parts, text.String())
	}
	return strings.Join(parts, ", then ")
}

// shown says what a wanted field is: see missing.
func shown(field string) string {
	if name, ok := strings.CutPrefix(field, "-"); ok {
		return "no " + code(name)
	}
	if start, ok := strings.CutSuffix(field, "…"); ok {
		return code(start) + "…"
	}
	return code(field)
}

// String implements [fmt.Stringer].
func (c conn) String() string { return [...]string{"kept", "closed", "–"}[c] }

const preamble = `# What the gateway makes of requests and responses

Each row is a probe: bytes that two parsers could read in two ways, or that must come out as they went in. The page is
written by its test, which sends every one of them through a gateway on real sockets:

    go test ./gateway/internal/smuggling -run TestPage -update

- **Sent**: by the caller, with ` + "`Host: gateway.test`" + ` left out where it is only there because a request needs one; in the
  sections on responses, by the upstream. A request is sent five ways, which must come to the same: at once, one byte for
  each of the gateway's reads, after another request on the connection, and written together with another one before it,
  also byte by byte. What is longer than 16 KiB comes in steps of 1,021 bytes.
- **Verdict**: what the caller gets. ` + "`…`" + ` stands for more.
- **The upstream gets**: every request that reaches it whole, after the route has put ` + "`/base`" + ` in the place of ` + "`/up`" + `.
- **Connection**: the caller's, afterwards. A dash where either will do.

What an upstream sends after the end of a response is also tried on callers side by side, since one by one it does not
show: TestResponseQueueIsNotPoisoned.

Sections are those of RFC 9110 and RFC 9112 unless another RFC is named.
`
