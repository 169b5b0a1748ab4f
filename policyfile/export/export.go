// Package export writes the policy of a dependency in the words of other software:
// of a mesh, a proxy, or a library. No such software holds the whole standard, so
// that each result comes with what was lost on the way, rule by rule, and what was
// chosen instead.
//
// Experimental: what this package exports may change in any version.
package export

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
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

// formats are the software that a policy can be written for, each with what writes a
// target in its words.
var formats = []struct {
	name  string
	write func(w *writer, t *target)
}{
	{"envoy", envoy},
	{"istio", istio},
	{"gatewayapi", gatewayAPI},
	{"grpc", grpc},
	{"nginx", nginx},
	{"haproxy", haproxy},
	{"linkerd", linkerd},
	{"resilience4j", resilience4j},
}

// Formats lists the software that a policy can be written for.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Write writes the policy of a dependency in the words of other software. The
// error says why it has none: queues and webhooks are no calls that a proxy could
// retry. The notes stand above the configuration, where its notation has comments.
func Write(format string, d *policyfile.Dependency, notes ...string) (*Export, error) {
	i := slices.Index(Formats(), format)
	if i < 0 {
		return nil, fmt.Errorf("unknown software %q%s", format, nearest.Hint(format, Formats(), ": want "+strings.Join(Formats(), ", ")))
	}
	t, err := targetOf(d)
	if err != nil {
		return nil, err
	}
	if t.grpc && slices.Contains([]string{"nginx", "haproxy", "resilience4j"}, format) {
		return nil, fmt.Errorf("%s is called over gRPC, whose codes %s cannot see: export to grpc, envoy, istio or linkerd", d.Name, format)
	}
	if t.grpc && format == "gatewayapi" {
		// GRPCRouteRule of v1.7.0 has no such fields.
		return nil, fmt.Errorf("%s is called over gRPC, and a GRPCRoute of Gateway API has neither retries nor timeouts: export to grpc, envoy, istio or linkerd", d.Name)
	}
	if t.ip && strings.Contains(t.host, ":") && (format == "istio" || format == "linkerd") {
		return nil, fmt.Errorf("%s is at %s, but %s finds services by name: use a host name in its url", d.Name, t.host, format)
	}
	if t.http2 && format == "nginx" {
		return nil, fmt.Errorf("%s speaks only HTTP/2, which few versions of nginx do: export to envoy or haproxy", d.Name)
	}
	w := &writer{export: &Export{Format: format}}
	formats[i].write(w, t)
	w.labels(t)
	w.waits(t)
	w.guards(t)
	w.trust(t)
	slices.SortStableFunc(w.export.Losses, func(a, b Loss) int { return cmp.Compare(number(a.Rule), number(b.Rule)) })
	if format != "grpc" { // JSON has no comments
		w.header(t, notes)
	}
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
		w.lose("R-6", "no setting declares every operation idempotent", "every method is retried, as in the policy")
	case t.p.Keys == forbear.KeyGenerate:
		w.lose("R-6", "no idempotency key is made", "writes are retried if their callers send one")
	}
	if t.unsent {
		w.lose("R-6", "writes without a key that were not sent look like any others", "they are not retried")
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
		w.lose("R-4", "no setting for "+strings.Join(found, ", "), "it is retried like other connection failures")
	}
}

// waits names the waits that only the policy has.
func (w *writer) waits(t *target) {
	var unread []string
	for name, form := range inOrder(t.p.WaitHeaders) {
		if _, known := envoyForms[form]; w.export.Format != "envoy" || !known {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 && t.retries > 0 {
		w.lose("R-5", "the wait in "+strings.Join(unread, ", ")+" is not read", "the retry is sent all the same")
	}
	switch {
	case t.retries == 0 || !slices.Contains([]string{"envoy", "istio", "grpc", "resilience4j"}, w.export.Format):
	case len(t.p.Backoff.Schedule) > 0:
		w.lose("R-1", "no schedule of waits", "waits double, from the schedule's first to its last")
	case t.p.Backoff.Jitter == forbear.JitterDecorrelated:
		w.lose("R-1", "no decorrelated jitter", "its own jitter, from the same base")
	case w.export.Format == "envoy":
		w.envoyWaits(t, t.p.Backoff.Cap)
	case w.export.Format == "istio":
		w.envoyWaits(t, 10*t.p.Backoff.Base)
	}
}

// inOrder yields a map by its keys, so that what is written does not change.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// guards names what else stops calls, or retries, by the policy: it is there whatever
// the retries.
func (w *writer) guards(t *target) {
	var found []string
	if !t.p.Breaker.Disabled && w.export.Format != "resilience4j" {
		found = append(found, "circuit breaker")
	}
	if t.health {
		found = append(found, "health gate")
	}
	if t.p.MaxConcurrent > 0 {
		found = append(found, "limit of concurrent calls")
	}
	if t.pace {
		found = append(found, "pacing after 429s")
	}
	if len(found) > 0 {
		w.lose("R-7", "no "+strings.Join(found, ", no "), "calls continue while the dependency fails")
	}
}

// trust names what of the policy's TLS and credentials is not to be had.
func (w *writer) trust(t *target) {
	format := w.export.Format
	_, err := netip.ParseAddr(t.serverName)
	switch own := format == "nginx" || format == "haproxy"; {
	case !t.tls:
	case own && err == nil:
		w.lose("R-9", "a certificate for an IP address is not recognized", "every call fails, unless tls.server_name is a name in the certificate")
	case format == "haproxy" && t.cert != "":
		w.lose("R-9", "certificate and key are one file", t.cert+" has to hold both")
	case format == "istio" && t.minTLS != "":
		w.lose("R-9", "no minimum version of TLS", "Istio's own, 1.2")
	}
	if t.credentials {
		w.lose("R-9", "no credentials are added", "callers bring their own")
	}
}

// keyed reports whether writes with a key are retried apart from others.
func (t *target) keyed() bool { return !t.p.Idempotent && t.p.Keys != forbear.KeyRefuse }

// header puts the losses above the configuration, where those who read it later
// find them.
func (w *writer) header(t *target, notes []string) {
	body := w.text.String()
	w.text.Reset()
	w.line("# The retry policy of %s, written by forbear policy export --to %s.", t.name, w.export.Format)
	for _, note := range notes {
		w.line("# %s", note)
	}
	if t.unknown {
		w.line("# Its address is in the environment of the service: the name %s stands for it.", t.host)
	}
	if t.standsFor {
		w.line("# A Service %s stands for %s:%d, as one of type ExternalName does.", service(t.name), t.host, t.port)
	}
	if needs := versions[w.export.Format]; needs != "" && t.retries > 0 {
		w.line("# %s", needs)
	}
	if slices.Contains([]string{"envoy", "nginx", "haproxy"}, w.export.Format) {
		w.line("# Callers connect to 127.0.0.1:10000: choose another address for each dependency.")
	}
	if len(w.export.Losses) > 0 {
		w.line("# What %s cannot do:", w.export.Format)
	}
	for _, l := range w.export.Losses {
		w.line("#   %s", l)
	}
	w.text.WriteString(body)
}

// versions are those of the software that know what is written. An older one refuses it, or
// drops it without a word.
var versions = map[string]string{
	"istio":      "retryBudget needs Istio 1.27 or later.",
	"gatewayapi": "It needs Gateway API 1.3 or later with its experimental channel, and an implementation that supports both resources.",
}

// join writes statuses with a separator.
func join(statuses []int, sep string) string {
	var texts []string
	for _, s := range statuses {
		texts = append(texts, strconv.Itoa(s))
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

// seconds writes a duration as protobuf's JSON form has it, which refuses what adding
// fractions in binary would leave behind.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "s"
}

// percent is the budget's share as a number of percent.
func (t *target) percent() string {
	return percent(t.p.Budget.Ratio)
}

// percent writes a share as a number of percent: 0.07 as 7, and not as what it is in
// binary.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e8)/1e6, 'f', -1, 64)
}

// plainWords are those that some reader of YAML takes for another type.
var plainWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// scalar writes a name or a host as a text of YAML.
func scalar(text string) string {
	letter := text != "" && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z')
	if letter && isName(text) && !slices.Contains(plainWords, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}

// service writes a name as one of Kubernetes, which has small letters alone.
func service(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '.' {
			return '-'
		}
		return unicode.ToLower(r)
	}, name)
	return cmp.Or(strings.Trim(name, "-"), "dependency")
}

// resource is such a name that no other dependency has: of two, the one that is
// applied later would take the first one's place.
func resource(name string) string {
	if s := service(name); s != name {
		h := fnv.New32a()
		h.Write([]byte(name))
		return fmt.Sprintf("%s-%08x", s, h.Sum32())
	}
	return name
}

// aKey is a key that may be sent again, as a regular expression.
const aKey = ".{1,64}"

// The methods that are idempotent by themselves (RFC 9110 section 9.2.2), as a
// regular expression.
const idempotent = "GET|HEAD|OPTIONS|PUT|DELETE"
