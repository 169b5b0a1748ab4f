//forbear:plain nothing runs at once
package page

import (
	"bytes"
	"errors"
	"html/template"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

type color string

type inner struct {
	Name  string
	Color color
}

// Shout is what templates must not reach: they call no methods.
func (inner) Shout() string { return "called" }

type data struct {
	inner
	Text  string
	N     int
	Big   int64
	Share float64
	Yes   bool
	None  *inner
	Some  *inner
	Any   any
	List  []string
	Empty []inner
	Items []inner
	Map   map[string][]string
	Wait  time.Duration
	Time  time.Time
}

var sample = data{
	inner: inner{"embedded", "red"}, Text: `<&>"'+`, N: 3, Big: 1 << 60, Share: .25, Yes: true, Some: &inner{"some", "blue"}, Any: &inner{"any", ""},
	List: []string{"a", "<b>"}, Items: []inner{{"x", "red"}, {"y", ""}}, Map: map[string][]string{"k": {"v", "w"}}, Wait: time.Second,
}

// load makes a set of one file.
func load(text string, funcs map[string]any) (*Set, error) {
	return Parse(fstest.MapFS{"t.html": {Data: []byte(text)}}, "*.html", funcs)
}

var testFuncs = map[string]any{
	"join": strings.Join, "bold": func(s string) Markup { return Markup("<b>" + s + "</b>") }, "fails": func() (string, error) { return "", errors.New("it fails") },
}

// What is written is what html/template writes.
func TestExecuteIsLikeHTMLTemplate(t *testing.T) {
	for _, text := range []string{
		`{{.Text}} {{.N}} {{.Big}} {{.Share}} {{.Yes}} {{.Wait}} {{.Time}} {{.Name}} {{.Color}}`,
		`<a title="{{.Text}}">{{printf "%q" .Text}}</a>`,
		`{{if .Yes}}yes{{else}}no{{end}}{{if .Text}}t{{end}}{{if .None}}never{{else if eq .N 3}}three{{else}}no{{end}}`,
		`{{if not .None}}none{{end}}{{if and .Yes .None}}never{{end}}{{if or .None .Yes}}or{{end}}{{and .Yes .N}}{{or "" .N}}`,
		`{{with .Some}}{{.Name}}{{.Color}}{{$.N}}{{end}}{{with .None}}never{{else}}else {{.N}}{{end}}{{with .Any}}{{.Name}}{{end}}`,
		`{{with $x := .N}}{{$x}}{{end}}{{$x := .Text}}{{with .Some}}{{$x}}{{$x := 1}}{{$x}}{{end}}{{$x}}`,
		`{{range .List}}[{{.}}]{{end}}{{range .Empty}}never{{else}}none{{end}}{{range $i, $e := .Items}}{{$i}}{{$e.Name}}{{if eq $e.Color "red"}}!{{end}}{{end}}{{range $e := .Items}}{{$e.Name}}{{end}}`,
		`{{len .List}}{{len .Text}}{{if gt (len .List) 1}}many{{end}}{{if ne .Name "x"}}other{{end}}{{if eq .N 1 2 3}}one of{{end}}`,
		`{{join .List ", "}}{{join .Map.k ""}}{{join .Map.missing ""}}`,
		`{{template "part" .Some}}{{define "part"}}<i>{{.Name}}{{$.Color}}</i>{{end}}{{/* a comment */}}{{- " trimmed " -}} end`,
		`{{printf "%d of %.1f %s %v" .N .Share .Name .Yes}}{{1}}{{"<"}}{{'a'}}`,
		`{{bold "x"}}{{bold (printf "%s" .Name)}}`,
	} {
		s, err := load(text, testFuncs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Execute("t.html", sample)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		reference := template.Must(template.New("").Funcs(template.FuncMap{"join": strings.Join, "fails": testFuncs["fails"], "bold": func(s string) template.HTML { return template.HTML("<b>" + s + "</b>") }}).Parse(text))
		var want bytes.Buffer
		if err := reference.Execute(&want, sample); err != nil {
			t.Fatal(err)
		}
		if string(got) != want.String() {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want.String())
		}
	}
}

// What could be written otherwise than html/template would is an error, not a guess.
func TestExecuteRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{{.Shout}}`:                                    "has no field Shout",
		`{{.Some.Shout}}`:                               "has no field Shout",
		`{{.Text.Name}}`:                                "has no field Name",
		`{{template "missing" .}}`:                      `no template "missing"`,
		`{{range .Map}}{{end}}`:                         "range over",
		`{{range .N}}{{end}}`:                           "range over",
		`{{range .List}}{{break}}{{end}}`:               "not supported",
		`{{$x := 1}}{{if .Yes}}{{$x = 2}}{{end}}{{$x}}`: "assigned",
		`{{join .List}}`:                                "has 1 arguments",
		`{{join .N ""}}`:                                "argument 1",
		`{{bold .N}}`:                                   "argument 1",
		`{{fails}}`:                                     "it fails",
		`{{.Text .N}}`:                                  "is not a function",
		`{{.N | printf "%d"}}`:                          "pipeline",
		`{{1.5}}`:                                       "not supported",
		`{{true}}`:                                      "not supported",
		`{{(.Some).Name}}`:                              "not supported",
		`{{and}}`:                                       "has 0 arguments",
	} {
		s, err := load(text, testFuncs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Execute("t.html", sample); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, error %v, want one with %q", text, got, err, want)
		}
	}
	if _, err := load(`{{nothing}}`, nil); err == nil {
		t.Error("a function that there is not was parsed")
	}
}

// FuzzEscape writes any text as html/template does, where templates may write.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", `<script>"'&+`, "\x00\xff`", "\ufffe\ufdd0\u2028", "&amp;", "]]>", "-->", "\U0001f600"} {
		f.Add(seed)
	}
	const text = `<title>{{.}}</title><a title="{{.}}">{{.}}</a><textarea>{{.}}</textarea>`
	s, err := load(text, nil)
	if err != nil {
		f.Fatal(err)
	}
	reference := template.Must(template.New("").Parse(text))
	f.Fuzz(func(t *testing.T, value string) {
		got, err := s.Execute("t.html", value)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := reference.Execute(&want, value); err != nil {
			t.Fatal(err)
		}
		if string(got) != want.String() {
			t.Errorf("got %q, want %q", got, want.String())
		}
	})
}
