// Package export writes the policy of a dependency in the words of other software:
// of a mesh, a proxy, or a library. No such software holds the whole standard, so
// that each result comes with what was lost on the way, rule by rule, and what was
// chosen instead.
package export

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/grpccode"
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

// Write writes the policy of a dependency of f in the words of other software. The
// error says why it has none: queues and webhooks are no calls that a proxy could
// retry.
func Write(format string, d *policyfile.Dependency) (*Export, error) {
	i := slices.Index(Formats(), format)
	if i < 0 {
		return nil, fmt.Errorf("unknown software %q%s", format, nearest.Hint(format, Formats(), ": want "+strings.Join(Formats(), ", ")))
	}
	t, err := targetOf(d)
	if err != nil {
		return nil, err
	}
	if t.grpc && slices.Contains([]string{"nginx", "haproxy", "resilience4j"}, format) {
		return nil, fmt.Errorf("%s is called by gRPC, whose codes %s does not see: want grpc, envoy, istio or linkerd", d.Name, format)
	}
	if t.ip && strings.Contains(t.host, ":") && (format == "istio" || format == "linkerd") {
		return nil, fmt.Errorf("%s is at %s, and %s knows services by their names", d.Name, t.host, format)
	}
	if t.http2 && format == "nginx" {
		return nil, fmt.Errorf("%s speaks HTTP/2 alone, and few versions of nginx do: want envoy or haproxy", d.Name)
	}
	w := &writer{export: &Export{Format: format}}
	formats[i].write(w, t)
	w.labels(t)
	w.waits(t)
	w.guards(t)
	w.trust(t)
	slices.SortStableFunc(w.export.Losses, func(a, b Loss) int { return cmp.Compare(number(a.Rule), number(b.Rule)) })
	if format != "grpc" { // JSON has no comments
		w.header(t)
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

// waits names the waits that only the policy has.
func (w *writer) waits(t *target) {
	switch {
	case t.retries == 0 || !slices.Contains([]string{"envoy", "istio", "grpc", "resilience4j"}, w.export.Format):
	case len(t.p.Backoff.Schedule) > 0:
		w.lose("R-1", "no schedule of waits", "they double from the first retry's, up to the last one's")
	case t.p.Backoff.Jitter == forbear.JitterDecorrelated:
		w.lose("R-1", "no decorrelated jitter", "its own, from the same base")
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
		found = append(found, "bound of the calls under way")
	}
	if t.pace {
		found = append(found, "pace that follows 429s")
	}
	if len(found) > 0 {
		w.lose("R-7", "no "+strings.Join(found, ", no "), "calls go on while the dependency fails")
	}
}

// trust names what of the policy's TLS and credentials is not to be had.
func (w *writer) trust(t *target) {
	format := w.export.Format
	_, err := netip.ParseAddr(t.serverName)
	switch own := format == "nginx" || format == "haproxy"; {
	case !t.tls:
	case own && err == nil:
		w.lose("R-9", "a certificate for an IP address is not recognized", "every call fails, unless tls.server_name is a name in it")
	case format == "haproxy" && t.cert != "":
		w.lose("R-9", "certificate and key are one file", t.cert+" has to hold both")
	case format == "istio" && t.minTLS != "":
		w.lose("R-9", "no least version of TLS", "Istio's own, 1.2")
	}
	if t.credentials {
		w.lose("R-9", "no credentials are added", "callers bring their own")
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
	if t.unknown {
		w.line("# Its address is in the environment of the service: the name %s stands for it.", t.host)
	}
	if slices.Contains([]string{"envoy", "nginx", "haproxy"}, w.export.Format) {
		w.line("# Callers connect to 127.0.0.1:10000: choose another address for each dependency.")
	}
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
	name       string
	host       string // a name or an IP address, without brackets
	ip         bool   // host is an address
	port       int
	authority  string // the Host of its requests
	path       string // what stands before the path of each, without a last slash
	unknown    bool   // the address is in the environment of the service
	tls        bool
	serverName string         // what its certificate is for
	ca         string         // the file with the authorities to trust, or "" for the system's
	cert, key  string         // the files with our own certificate, or ""
	minTLS     string         // "1.3", or ""
	servers    []string       // host:port of each
	p          forbear.Policy // with its defaults
	retries    int
	statuses   []int    // that are retried, in their order
	codes      []string // of gRPC, likewise
	attempt    time.Duration
	grpc       bool
	http2      bool // whatever the handshake says
	unsent     bool // writes without a key are retried when they were not sent
	health     bool // there is a health gate
	pace       bool
	// credentials are added to requests that have none.
	credentials bool
}

// targetOf reads what a proxy needs to know.
func targetOf(d *policyfile.Dependency) (*target, error) {
	p := d.Policy.WithDefaults()
	if p.Kind.Durable() || p.Kind == forbear.Batch {
		return nil, fmt.Errorf("%s is of kind %s: its retries outlast a call, and no proxy holds them", d.Name, p.Kind)
	}
	t := &target{
		name: d.Name, host: d.Name, port: 80, p: p, retries: p.Retries(), attempt: min(p.AttemptTimeout(), p.Total),
		grpc: p.Kind == forbear.GRPC || d.Protocol == "grpc", unsent: p.RetryUnsent && !p.Idempotent, statuses: statuses(&p), codes: codes(&p),
		health: p.Health.MinSuccess > 0 || d.Probe.Endpoint != "", pace: d.Pace == policyfile.PaceOn, credentials: d.Credentials.TokenURL != "" || d.Credentials.Secret != policyfile.Secret{},
		ca: d.TLS.CA, cert: d.TLS.Cert, key: d.TLS.Key,
	}
	if d.TLS.MinVersion == "1.3" {
		t.minTLS = d.TLS.MinVersion
	}
	if t.grpc {
		// What a proxy gives in the place of a response of gRPC is UNAVAILABLE.
		t.statuses = nil
		if slices.Contains(t.codes, "UNAVAILABLE") {
			t.statuses = []int{429, 502, 503, 504}
		}
	}
	if steps := p.Backoff.Schedule; len(steps) > 1 {
		// The first is before the first attempt.
		t.p.Backoff.Base, t.p.Backoff.Cap = steps[1], steps[len(steps)-1]
	}
	t.whole()
	if err := t.locate(d); err != nil {
		return nil, err
	}
	t.authority, t.serverName = cmp.Or(t.authority, t.host), cmp.Or(d.TLS.ServerName, t.host)
	t.http2 = t.grpc || d.HTTP2 == policyfile.HTTP2Only
	t.servers = d.Endpoints.Addresses
	if len(t.servers) == 0 {
		t.servers = []string{net.JoinHostPort(t.host, strconv.Itoa(t.port))}
	}
	return t, nil
}

// locate reads where the dependency is: at its URL, or behind its name.
func (t *target) locate(d *policyfile.Dependency) error {
	if t.unknown = strings.HasPrefix(d.URL, policyfile.FromEnvironment); t.unknown {
		t.tls, t.port = true, 443
		return nil
	}
	if d.URL == "" {
		return nil
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return fmt.Errorf("%s has no URL that can be read", d.Name)
	}
	t.host, t.authority, t.path = u.Hostname(), u.Host, plainPath(u)
	addr, err := netip.ParseAddr(t.host)
	t.ip = err == nil
	if !isName(t.host) && (!t.ip || addr.Zone() != "") {
		return fmt.Errorf("%s is at %q: want a name in ASCII, or an IP address", d.Name, t.host)
	}
	if t.tls = u.Scheme == "https"; t.tls {
		t.port = 443
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%s is at port %s: want 1 to 65535", d.Name, text)
		}
		t.port = int(port)
	}
	return nil
}

// plainPath is the path of a URL as every notation takes it: what means something in
// one of them is escaped.
func plainPath(u *url.URL) string {
	var b strings.Builder
	for _, c := range []byte(strings.TrimRight(u.EscapedPath(), "/")) {
		if isName(string(c)) || c == '/' || c == '%' || c == '~' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// authorities is the file with the authorities to trust, for software that has to be
// told of the system's.
func (t *target) authorities() string { return cmp.Or(t.ca, "/etc/ssl/certs/ca-certificates.crt") }

// isName reports whether a host can be written in any notation: more than names of
// DNS have, and nothing that ends a word.
func isName(host string) bool {
	return host != "" && len(host) <= 253 && !strings.ContainsFunc(host, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '.' && r != '-' && r != '_'
	})
}

// whole rounds the times to milliseconds, which is as fine as most software has
// them.
func (t *target) whole() {
	for _, d := range []*time.Duration{
		&t.attempt, &t.p.Total, &t.p.Connect, &t.p.Backoff.Base, &t.p.Backoff.Cap, &t.p.Budget.Window, &t.p.Breaker.OpenFor, &t.p.Breaker.SlowCall,
	} {
		*d = max(d.Round(time.Millisecond), time.Millisecond)
	}
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
