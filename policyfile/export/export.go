// Package export writes the policy of a dependency in the words of other software:
// of a mesh, a proxy, or a library. No such software holds the whole standard, so
// that each result comes with what was lost on the way, rule by rule, and what was
// chosen instead.
package export

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/grpccode"
	"github.com/forbear-go/forbear/policyfile"
)

// Loss is a part of the policy that the software cannot hold.
type Loss struct {
	// Rule is that of the standard which is not held as it is written.
	Rule string `json:"rule"`
	// Lacks says what is not there, and Chosen what was written in its place.
	Lacks  string `json:"lacks"`
	Chosen string `json:"chosen"`
}

// String returns "R-7: no retry budget; instead: one retry at most".
func (l Loss) String() string { return l.Rule + ": " + l.Lacks + "; instead: " + l.Chosen }

// Export is a configuration of other software.
type Export struct {
	// Format is its name, as [Formats] lists it and check knows it.
	Format string
	Config []byte
	// Losses are in the order of the rules, some of which may stand twice.
	Losses []Loss
}

// writers write a target in the words of a product.
var writers = map[string]func(w *writer, t *target){
	"envoy": envoy, "istio": istio, "grpc": grpc, "nginx": nginx,
	"haproxy": haproxy, "linkerd": linkerd, "resilience4j": resilience4j,
}

// Formats lists the software that a policy can be written for.
func Formats() []string {
	return []string{"envoy", "istio", "grpc", "nginx", "haproxy", "linkerd", "resilience4j"}
}

// Write writes the policy of a dependency of f in the words of other software. The
// error says why it has none: queues and webhooks are no calls that a proxy could
// retry.
func Write(format string, d *policyfile.Dependency) (*Export, error) {
	write, ok := writers[format]
	if !ok {
		return nil, fmt.Errorf("unknown software %q: want %s", format, strings.Join(Formats(), ", "))
	}
	t, err := targetOf(d)
	if err != nil {
		return nil, err
	}
	if t.grpc && slices.Contains([]string{"nginx", "haproxy", "resilience4j"}, format) {
		return nil, fmt.Errorf("%s is called by gRPC, whose codes %s does not see: want grpc, envoy, istio or linkerd", d.Name, format)
	}
	w := &writer{export: &Export{Format: format}}
	write(w, t)
	w.labels(t)
	if format != "grpc" { // JSON has no comments
		w.header(t)
	}
	slices.SortStableFunc(w.export.Losses, func(a, b Loss) int { return cmp.Compare(number(a.Rule), number(b.Rule)) })
	w.export.Config = []byte(w.text.String())
	return w.export, nil
}

// number orders R-10 behind R-9.
func number(rule string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(rule, "R-"))
	return n
}

// writer gathers a configuration and its losses.
type writer struct {
	export *Export
	text   strings.Builder
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// lose records what the software cannot hold, and what was chosen instead.
func (w *writer) lose(rule, lacks, chosen string) {
	w.export.Losses = append(w.export.Losses, Loss{rule, lacks, chosen})
}

// writes names what the policy says of operations that are not idempotent by
// themselves, and software that sees methods and keys cannot.
func (w *writer) writes(t *target) {
	switch {
	case t.p.Idempotent:
		w.lose("R-6", "nothing here says that every operation is idempotent", "every method is retried, as the policy has it")
	case t.p.Keys == forbear.KeyGenerate:
		w.lose("R-6", "no idempotency key is made", "writes are retried whose callers send one")
	}
	if t.unsent {
		w.lose("R-6", "writes without a key that were not sent are not told from others", "they are not retried")
	}
}

// labels names the failures of a connection that the policy sets apart, which no
// other software does.
func (w *writer) labels(t *target) {
	var found []string
	for label := range t.p.Classify {
		if !strings.HasPrefix(label, "http_") && !strings.HasPrefix(label, "grpc_") {
			found = append(found, label)
		}
	}
	if len(found) > 0 && t.retries > 0 {
		slices.Sort(found)
		w.lose("R-4", "no word for "+strings.Join(found, ", "), "what it stands for is retried as other failures of a connection are")
	}
}

// keyed reports whether writes with a key are retried apart from others.
func (t *target) keyed() bool { return !t.p.Idempotent && t.p.Keys != forbear.KeyRefuse }

// header puts the losses above the configuration, where those who read it later
// find them.
func (w *writer) header(t *target) {
	body := w.text.String()
	w.text.Reset()
	w.line("# The retry policy of %s, written by forbear policy export --to %s.", t.name, w.export.Format)
	if len(w.export.Losses) > 0 {
		w.line("# What %s cannot hold of it:", w.export.Format)
	}
	for _, l := range w.export.Losses {
		w.line("#   %s", l)
	}
	w.text.WriteString(body)
}

// target is a dependency as proxies see it.
type target struct {
	name         string
	host         string
	port         int
	tls          bool
	p            forbear.Policy // with its defaults
	retries      int
	statuses     []int    // that are retried, in their order
	codes        []string // of gRPC, likewise
	attempt      time.Duration
	grpc         bool
	unsent       bool // writes without a key are retried when they were not sent
}

// targetOf reads what a proxy needs to know.
func targetOf(d *policyfile.Dependency) (*target, error) {
	p := d.Policy.WithDefaults()
	if p.Kind.Durable() || p.Kind == forbear.Batch {
		return nil, fmt.Errorf("%s is of kind %s: its retries outlast a call, and no proxy holds them", d.Name, p.Kind)
	}
	t := &target{
		name: d.Name, host: d.Name, port: 80, p: p, retries: p.Retries(), attempt: p.AttemptTimeout(),
		grpc: p.Kind == forbear.GRPC || d.Protocol == "grpc", unsent: p.RetryUnsent && !p.Idempotent, statuses: statuses(&p), codes: codes(&p),
	}
	if t.grpc {
		// What a proxy gives in the place of a response of gRPC is UNAVAILABLE.
		t.statuses = nil
		if slices.Contains(t.codes, "UNAVAILABLE") {
			t.statuses = []int{429, 502, 503, 504}
		}
	}
	if d.URL == "" {
		return t, nil
	}
	u, err := url.Parse(d.URL)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%s has no URL that can be read", d.Name)
	}
	t.host = u.Hostname()
	if t.tls = u.Scheme == "https"; t.tls {
		t.port = 443
	}
	if port := u.Port(); port != "" {
		t.port, _ = strconv.Atoi(port) // url.Parse admits digits alone
	}
	return t, nil
}

// statuses lists the statuses that a policy retries: those of the standard,
// and what the policy overrides.
func statuses(p *forbear.Policy) (found []int) {
	req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "localhost"}}
	for status := 400; status < 600; status++ {
		class := httpretry.Classify(req, &http.Response{StatusCode: status, Header: http.Header{}, Request: req}, nil).Class
		if c, ok := p.Classify[fmt.Sprintf("http_%dxx", status/100)]; ok {
			class = c
		}
		if c, ok := p.Classify[fmt.Sprintf("http_%d", status)]; ok {
			class = c
		}
		if class.Retryable() {
			found = append(found, status)
		}
	}
	return found
}

// codes lists the codes of gRPC that a policy retries, in the same way.
func codes(p *forbear.Policy) (found []string) {
	for code, name := range grpccode.Names {
		class := grpccode.Class(uint32(code))
		if c, ok := p.Classify[grpccode.Label(uint32(code))]; ok {
			class = c
		}
		if class.Retryable() {
			found = append(found, name)
		}
	}
	return found
}

// join writes statuses with a separator.
func join(statuses []int, before, sep string) string {
	var texts []string
	for _, s := range statuses {
		texts = append(texts, before+strconv.Itoa(s))
	}
	return strings.Join(texts, sep)
}

// only keeps the statuses that a product knows.
func only(statuses []int, known ...int) (kept, dropped []int) {
	for _, s := range statuses {
		if slices.Contains(known, s) {
			kept = append(kept, s)
		} else {
			dropped = append(dropped, s)
		}
	}
	return kept, dropped
}

// seconds writes a duration as protobuf's JSON form has it.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// percent is the budget's share as a number of percent.
func (t *target) percent() string {
	return strconv.FormatFloat(100*t.p.Budget.Ratio, 'f', -1, 64)
}

// The methods that are idempotent by themselves (RFC 9110 section 9.2.2), as a
// regular expression.
const idempotent = "GET|HEAD|OPTIONS|PUT|DELETE"
