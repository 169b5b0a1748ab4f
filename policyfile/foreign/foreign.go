// Package foreign reads the retry settings of other software into the form of a
// policy file, so that they are held against the same standard: gRPC service
// configs, Envoy, Istio, nginx and HAProxy. Findings carry the positions of the
// files that were read.
//
// What the other software calls by another name is translated: attempts that
// count the first call become retries, for instance. What it cannot express,
// such as a retry budget, is a broken rule of the one policy that lacks it. A
// field that an adapter does not know is never a fault; what might matter and
// could not be judged is listed in [policyfile.File.Unjudged].
package foreign

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// readers are the adapters by format. A new one is added here, in Formats
// and in Detect.
var readers = map[string]func(*reader, []byte) error{
	"grpc":    (*reader).grpc,
	"envoy":   (*reader).envoy,
	"istio":   (*reader).istio,
	"nginx":   (*reader).nginx,
	"haproxy": (*reader).haproxy,
}

// Formats lists the formats that [Read] knows, in the order in which the
// help shows them.
func Formats() []string { return []string{"grpc", "envoy", "istio", "nginx", "haproxy"} }

// haproxySection matches a line that begins a section of haproxy.cfg. Its
// keywords end a line without a colon, unlike the keys of a YAML file.
var haproxySection = regexp.MustCompile(`(?m)^(backend|frontend|listen|defaults|global)([ \t]+[^\s:]+)*[ \t]*(#.*)?$`)

// Detect returns the format of a file, or "" for one that is none of these.
// It looks for words that the format cannot do without, and at the extension
// where those are ambiguous; --format overrides it.
func Detect(name string, data []byte) string {
	has := func(s string) bool { return bytes.Contains(data, []byte(s)) }
	// The order matters: an Istio file may mention Envoy, and not the other
	// way round.
	switch ext := filepath.Ext(name); {
	case has("methodConfig") && ext != ".conf" && ext != ".cfg":
		return "grpc"
	case has("networking.istio.io/"):
		return "istio"
	case has("static_resources:") || has("virtual_hosts") || has("virtualHosts") || has(`"static_resources"`):
		return "envoy"
	case has("proxy_pass") || ext == ".conf" && has("{") && has(";"):
		return "nginx"
	case ext == ".cfg" || ext != ".yaml" && ext != ".yml" && haproxySection.Match(data):
		return "haproxy"
	}
	return ""
}

// Read reads data in the given format. refused holds the rules of the
// standard that it breaks. err is for data that cannot be read at all.
func Read(format, name string, data []byte) (f *policyfile.File, refused []*policyfile.Fault, err error) {
	read, ok := readers[format]
	if !ok {
		return nil, nil, fmt.Errorf("unknown format %q: want %s", format, strings.Join(Formats(), ", "))
	}
	// The same bound as for policy files: these come from other
	// repositories.
	if len(data) > policyfile.MaxSize {
		return nil, nil, fmt.Errorf("%s is larger than %d MiB", name, policyfile.MaxSize>>20)
	}
	// Format marks the file: check judges what the format can express, and
	// leaves out the rest.
	r := &reader{file: &policyfile.File{Name: name, Format: format}}
	if err := read(r, data); err != nil {
		return nil, nil, err
	}
	return r.file, r.refused, nil
}

// reader gathers what one file says. Every adapter is a method of it.
type reader struct {
	file    *policyfile.File
	refused []*policyfile.Fault
}

// at is a position in the file that is read; nodes without a place count as
// line 1.
func (r *reader) at(line, column int) policyfile.Position {
	return policyfile.Position{File: r.file.Name, Line: max(line, 1), Column: max(column, 1)}
}

// refuse records a broken rule of a dependency. field is that of a policy
// file, by which package check finds the id.
func (r *reader) refuse(at policyfile.Position, rule string, d *policyfile.Dependency, field, format string, args ...any) {
	r.refused = append(r.refused, &policyfile.Fault{
		Position: at, Rule: rule, Dependency: d.Name, Field: field,
		Message: d.Name + ": " + fmt.Sprintf(format, args...),
	})
}

// unjudged records what an adapter cannot judge. It is shown as FC001, so
// that its silence is not taken for consent.
func (r *reader) unjudged(at policyfile.Position, dependency, format string, args ...any) {
	r.file.Unjudged = append(r.file.Unjudged, &policyfile.Fault{
		Position: at, Dependency: dependency, Message: fmt.Sprintf(format, args...),
	})
}

// fields are those whose ranges mean the same in every format. The others
// have no counterpart, and their defaults say nothing about the file.
var fields = []string{"max_retries", "total", "backoff.base", "backoff.cap", "budget.ratio"}

// add finishes a dependency: the ranges of the standard apply to it as to a
// policy file. The budget's own limits do not, except for its ratio, since
// adapters set nothing else of it.
func (r *reader) add(d policyfile.Dependency) {
	for _, v := range violation.Of(&d.Policy) {
		// An adapter that sets no window must not get a finding about one.
		if v.Rule == "" || v.Rule == "R-7" && v.Field != "budget.ratio" || !slices.Contains(fields, v.Field) {
			continue
		}
		at, _ := d.Place(v.Field)
		r.refuse(at, v.Rule, &d, v.Field, "%s %s", v.Field, v.Detail)
	}
	r.file.Dependencies = append(r.file.Dependencies, d)
}

// retries sets the number of retries. None at all becomes Disabled, because
// zero means the default in a policy.
func retries(d *policyfile.Dependency, n int, at policyfile.Position) {
	d.SetPlace("max_retries", at)
	if d.Policy.Disabled = n <= 0; n > 0 {
		d.Policy.MaxRetries = n
	}
}

// never are the statuses that R-4 forbids to retry.
var never = []string{"400", "401", "403", "404", "409", "422"}
