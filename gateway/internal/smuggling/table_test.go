package smuggling

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/probes.md")

const (
	table = "testdata/probes.md"
	page  = "../../../docs/gateway-requests.md"
)

// section is a part of the table.
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

// TestTable holds testdata/probes.md to the probes.
func TestTable(t *testing.T) {
	text := render(t)
	if *update {
		if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != text {
		t.Errorf("%s differs from the probes: run with -update", table)
	}
}

// TestPage holds the counts of docs/gateway-requests.md to the probes. A response is
// refused when the caller gets a 502 in its place.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		refused := 0
		for _, p := range s.probes {
			status := p.want.status
			bad := s.once && len(status) > 0 && status[len(status)-1] == http.StatusBadGateway
			if bad || strings.HasPrefix(p.want.String(), "refused: ") {
				refused++
			}
		}
		row := fmt.Sprintf("| %s | %d | %d |", s.title, len(s.probes), refused)
		if !strings.Contains(string(data), row) {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
}

// render returns the table.
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

// row returns the probe's row of the table.
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

Written by its test, which sends each row through a gateway on real sockets. docs/gateway-requests.md says what the
columns mean.

    go test ./gateway/internal/smuggling -run TestTable -update
`
