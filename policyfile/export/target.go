package export

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/terminal"
)

// target is a dependency as proxies see it.
type target struct {
	name       string
	host       string // a name or an IP address, without brackets
	ip         bool   // host is an address
	port       int
	authority  string // the Host of its requests
	path       string // what stands before the path of each, without a last slash
	unknown    bool   // the address is in the environment of the service
	standsFor  bool   // a service of Kubernetes stands for the host
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
	bodyLimit  policyfile.Size // of a body that is kept to be sent again; 0 for the default
	// credentials are added to requests that have none.
	credentials bool
}

// targetOf reads what a proxy needs to know.
func targetOf(d *policyfile.Dependency) (*target, error) {
	p := d.Policy.WithDefaults()
	if p.Kind.Durable() || p.Kind == forbear.Batch {
		return nil, fmt.Errorf("%s has kind %s: its retries outlast a call, and no proxy can do that", d.Name, p.Kind)
	}
	t := &target{
		name: d.Name, host: d.Name, port: 80, p: p, retries: p.Retries(), attempt: min(p.AttemptTimeout(), p.Total),
		grpc: p.Kind == forbear.GRPC || d.Protocol == "grpc", unsent: p.RetryUnsent && !p.Idempotent, statuses: statuses(&p), codes: codes(&p),
		health: p.Health.MinSuccess > 0 || d.Probe.Endpoint != "", pace: d.Pace == policyfile.PaceOn, credentials: d.Credentials.TokenURL != "" || d.Credentials.Secret != policyfile.Secret{},
		bodyLimit: d.BodyLimit, ca: d.TLS.CA, cert: d.TLS.Cert, key: d.TLS.Key,
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
		return fmt.Errorf("%s has no usable url: set one in the policy file", d.Name)
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
	for status := 400; status < 600; status++ {
		class := terminal.StatusClass(status)
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
	for _, name := range grpccode.Names {
		class := terminal.CodeClass(name)
		if c, ok := p.Classify["grpc_"+name]; ok {
			class = c
		}
		if class.Retryable() {
			found = append(found, name)
		}
	}
	return found
}
