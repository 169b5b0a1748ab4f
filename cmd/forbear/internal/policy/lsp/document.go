package lsp

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/settings"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// document is a text that the client has open.
type document struct {
	path  string // in the file system, or "" of one that is not there
	name  string // what findings call it
	text  string
	lines []string
	// policy says that the text as a whole is a policy file. One stays it while it
	// cannot be parsed, as happens between two keys.
	policy bool
	found  []report.Finding // those that count
}

func newDocument(uri string) *document {
	d := &document{name: path.Base(uri)}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return d
	}
	p := u.Path
	if len(p) > 2 && p[0] == '/' && p[2] == ':' {
		p = p[1:] // /C:/folder/file
	}
	d.path = filepath.FromSlash(p)
	d.name = filepath.Base(d.path)
	return d
}

// update takes a new text, and returns what is found in it. Its circumstances are
// those of o, with the settings that apply to the document.
func (d *document) update(text string, o check.Options) []diagnostic {
	d.text, d.lines, d.found = text, split(text), nil
	found := []diagnostic{}
	base := filepath.Base(d.name)
	if base == check.SettingsName || base == settings.FileName {
		return found
	}
	name, err := d.settings(&o)
	if err != nil {
		found = append(found, diagnostic{Severity: severityError, Source: source, Message: err.Error()})
	}
	format := ""
	if d.declared() {
		format = "forbear"
	}
	read := check.ReadAll([]check.Input{{Name: name, Data: []byte(text), Format: format, Met: true}})
	d.recognize(format, read)
	for _, p := range read.Problems {
		if p.Kind != report.Unrecognized {
			found = append(found, diagnostic{Range: d.extent(p.Line, p.Column), Severity: severityError, Source: source, Message: p.Message})
		}
	}
	result := check.Run(read.Sources, o)
	for _, f := range result.Findings {
		if f.Suppressed == "" {
			d.found = append(d.found, f)
			found = append(found, d.diagnose(&f))
		}
	}
	for _, err := range result.Unjudged {
		found = append(found, diagnostic{Severity: severityWarning, Source: source, Message: err.Error()})
	}
	return found
}

// settings finds the settings for the document, and returns the name that their
// patterns know it by: the path from their folder.
func (d *document) settings(o *check.Options) (name string, err error) {
	o.Settings = nil
	if d.path == "" {
		return d.name, nil
	}
	file := settings.Discover(filepath.Dir(d.path), check.SettingsName)
	if file == "" {
		return d.name, nil
	}
	name, err = filepath.Rel(filepath.Dir(file), d.path)
	if err != nil {
		return d.name, err
	}
	data, err := os.ReadFile(file)
	if err == nil {
		o.Settings, err = check.ParseSettings(check.SettingsName, data)
	}
	return name, err
}

// declared reports whether the document says that it is a policy file, by its name or
// by the schema in a comment, whatever it holds so far.
func (d *document) declared() bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(d.name, ".yaml"), ".yml")
	if stem != d.name && (stem == "forbear" || strings.HasSuffix(stem, ".forbear")) {
		return true
	}
	first, _, _ := strings.Cut(d.text, "\n")
	return strings.HasPrefix(first, "#") && strings.Contains(first, "$schema="+policyfile.SchemaURL)
}

// recognize decides whether the text is a policy file.
func (d *document) recognize(format string, read *check.Reading) {
	if format != "" {
		d.policy = true
		return
	}
	if len(read.Sources) == 0 {
		return // not recognized now: it stays what it was
	}
	// A policy file inside of another, as in a ConfigMap, is not the text itself.
	d.policy = false
	for _, p := range foreign.Open(d.name, []byte(d.text), "").Policies {
		d.policy = d.policy || len(p.Data) == len(d.text)
	}
}

// diagnose is a finding as the protocol has it.
func (d *document) diagnose(f *report.Finding) diagnostic {
	severity := map[report.Severity]int{report.Error: severityError, report.Warning: severityWarning, report.Note: severityInformation}[f.Severity]
	message := f.Message
	if f.Hint != "" {
		message += "\n" + f.Hint
	}
	return diagnostic{Range: d.extent(f.Line, f.Column), Severity: severity, Code: f.ID, Source: source, Message: message}
}

// split cuts a text into its lines, whose ends may be \n, \r\n or \r.
func split(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// line returns a line, or "" of one that is not there.
func (d *document) line(n int) string {
	if n < 0 || n >= len(d.lines) {
		return ""
	}
	return d.lines[n]
}

// extent is the key or the value that begins at a place of a finding, whose line and
// column count from 1, the column in characters.
func (d *document) extent(line, column int) span {
	n := min(max(line-1, 0), max(len(d.lines)-1, 0))
	text := d.line(n)
	start := 0
	for range max(column-1, 0) {
		_, size := utf8.DecodeRuneInString(text[start:])
		start += size
	}
	end := tokenEnd(text, start)
	if start == end { // nothing there: what there is on the line
		start, end = len(text)-len(strings.TrimLeft(text, " \t")), len(strings.TrimRight(text, " \t"))
		start = min(start, end)
	}
	return d.span(n, start, end)
}

// span is a part of a line, whose ends are in bytes.
func (d *document) span(n, start, end int) span {
	text := d.line(n)
	return span{position{n, units(text[:start])}, position{n, units(text[:end])}}
}

// units is the length of a text in UTF-16 code units.
func units(text string) (n int) {
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// offset is the byte of a line at which a character of the protocol stands, at most
// its end.
func offset(text string, character int) int {
	n := 0
	for i, r := range text {
		if n >= character {
			return i
		}
		n += max(utf16.RuneLen(r), 1)
	}
	return len(text)
}
