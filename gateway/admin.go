package gateway

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/loopback"
)

// AdminConfig says what an admin endpoint shows and demands.
type AdminConfig struct {
	// Stats is what it shows, and through which it finds the Retryers.
	Stats *Stats
	// Metrics serves GET /metrics; nil means that there is no such page.
	Metrics http.Handler
	// Token is what callers must bring as "Authorization: Bearer TOKEN".
	// Without one, only requests to a loopback name are served, and the
	// endpoint must listen on loopback: see [CheckAdmin].
	Token string
	// MetricsToken opens GET /metrics too, and nothing else: what scrapes needs
	// no right to override. Without a Token the page demands this one.
	MetricsToken string
	// Policy writes a policy as text, by the keys of a policy file; nil leaves it out.
	Policy func(forbear.Policy) string
	// Logger gets each override with its actor. Nil means slog.Default().
	Logger *slog.Logger
}

// CheckAdmin refuses an address to listen on that others could reach, unless
// there is a token, and a token that is shorter than 16 characters.
func CheckAdmin(address, token string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if token == "" {
		if !loopback.Host(host) {
			return errors.New("the admin endpoint needs a token beyond loopback")
		}
		return nil
	}
	_, err = inbound.Token(token)
	return err
}

// admin is the endpoint behind its guards.
type admin struct{ AdminConfig }

// NewAdmin returns the handler of the admin endpoint:
//
//	GET  /admin/status                     what each dependency does, as a [Status]
//	GET  /admin/dependencies/{dependency}  one of them, as a [DependencyDetail]
//	POST /admin/breakers/{dependency}      {"state":"open|closed|auto","actor":"jane"}
//	GET  /metrics                          when AdminConfig.Metrics is set
//
// The status takes sort=name or trouble, q=PART of the name, limit= and offset=, or the
// names of dependencies as name=: see [StatusQuery].
//
// An override holds the circuit breaker open or closed until "auto" gives it
// back to itself; the actor is logged (INTG-STD-033). State-changing requests
// of other origins are refused, as are requests by a name that is not loopback
// when there is no token, so that no page in a browser reaches it.
func NewAdmin(c AdminConfig) http.Handler {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	a := &admin{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/status", a.status)
	mux.HandleFunc("GET /admin/dependencies/{dependency}", a.detail)
	mux.HandleFunc("POST /admin/breakers/{dependency}", a.override)
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusNotFound, "no-such-page", "No such page", "the pages are GET /admin/status, GET /admin/dependencies/DEPENDENCY, POST /admin/breakers/DEPENDENCY and GET /metrics")
	})
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusForbidden, "cross-origin", "Cross-origin request", "requests from pages of other origins are refused")
	}))
	pages := origin.Handler(mux)
	guarded := demand(pages, c.Token)
	if c.Metrics == nil || c.MetricsToken == "" {
		return guarded
	}
	scraped := demand(pages, c.Token, c.MetricsToken)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			scraped.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// status shows the counts and where each breaker and budget stands.
func (a *admin) status(w http.ResponseWriter, r *http.Request) {
	q, err := readQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, "bad-query", "Bad query", err.Error())
		return
	}
	respond(w, a.Stats.Page(time.Now(), q))
}

// errQuery says what a status may be asked for. What is misspelt would otherwise show
// everything.
var errQuery = fmt.Errorf("the parameters, each once at most, are sort=name or trouble, q=a part of the name of up to 128 bytes, limit=1 to %d and offset=0 to 1000000; or up to %[1]d times name", MaxPage)

// readQuery reads the parameters of a status.
func readQuery(raw string) (q StatusQuery, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, errQuery
	}
	for name, given := range values {
		text := given[0]
		n, err := strconv.Atoi(text)
		switch {
		case name == "name" && len(given) <= MaxPage:
			q.Only = given
		case len(given) > 1:
			return q, errQuery
		case name == "sort" && (text == "name" || text == "trouble"):
			q.ByTrouble = text == "trouble"
		case name == "q" && len(text) <= 128:
			q.Name = text
		case name == "limit" && err == nil && 1 <= n && n <= MaxPage:
			q.Limit = n
		case name == "offset" && err == nil && 0 <= n && n <= 1_000_000:
			q.Offset = n
		default:
			return q, errQuery
		}
	}
	return q, nil
}

// detail shows one dependency.
func (a *admin) detail(w http.ResponseWriter, r *http.Request) {
	d, ok := a.Stats.Detail(time.Now(), r.PathValue("dependency"), a.Policy)
	if !ok {
		refuse(w, r, http.StatusNotFound, "no-dependency", "No such dependency", "no dependency has that name: GET /admin/status lists them")
		return
	}
	respond(w, d)
}

// maxOverride bounds the body of an override.
const maxOverride = 4 << 10

// maxActor bounds the name of an actor, in bytes.
const maxActor = 128

// override forces a breaker. It checks the whole request before it touches
// anything, and logs the actor before it acts.
func (a *admin) override(w http.ResponseWriter, r *http.Request) {
	var in struct{ State, Actor string }
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOverride))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || d.Decode(&struct{}{}) != io.EOF {
		refuse(w, r, http.StatusBadRequest, "bad-override", "Bad override", `want {"state":"open|closed|auto","actor":"..."}`)
		return
	}
	in.Actor = strings.TrimSpace(in.Actor)
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case in.Actor == "" || len(in.Actor) > maxActor || strings.ContainsFunc(in.Actor, unprintable):
		refuse(w, r, http.StatusBadRequest, "bad-override", "Bad override", "actor must name you, in 1 to 128 printable bytes")
		return
	case in.State != "open" && in.State != "closed" && in.State != "auto":
		refuse(w, r, http.StatusBadRequest, "bad-override", "Bad override", "state must be open, closed or auto")
		return
	}
	found := a.Stats.retryer(r.PathValue("dependency"))
	if found == nil {
		refuse(w, r, http.StatusNotFound, "no-dependency", "No such dependency", "no dependency has that name: GET /admin/status lists them")
		return
	}
	b := found.Breaker()
	if b == nil {
		refuse(w, r, http.StatusConflict, "no-breaker", "No circuit breaker", "the policy of this dependency turns its circuit breaker off")
		return
	}
	// First the log: an override that cannot be attributed must not happen.
	a.Logger.LogAttrs(r.Context(), slog.LevelWarn, "circuit breaker override",
		slog.String("dependency", found.Dependency()), slog.String("previous", b.State().String()),
		slog.String("state", in.State), slog.String("actor", in.Actor))
	switch in.State {
	case "open":
		b.Force(breaker.Open, in.Actor, time.Now())
	case "closed":
		b.Force(breaker.Closed, in.Actor, time.Now())
	default:
		b.Release()
	}
	respond(w, a.Stats.counts.tally(found.Dependency()).breakerStatus(b, time.Now()))
}

// respond writes v as JSON.
func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// refuse responds with problem details (RFC 9457).
func refuse(w http.ResponseWriter, r *http.Request, status int, kind, title, detail string) {
	newRequest(r, false).problem(w, newProblem(status, kind, title, detail))
}

// NewMetrics returns a handler that serves page at GET /metrics and nothing else,
// for an address of its own: anyone who reaches it may read, but not force a breaker. With
// a token callers must bring it as "Authorization: Bearer TOKEN". Without one the
// page is open; where local says that it listens on loopback alone, then only to
// a loopback name, so that no page in a browser reads it by a name of its own.
func NewMetrics(page http.Handler, token string, local bool) http.Handler {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, r, http.StatusNotFound, "no-such-page", "No such page", "the only page here is GET /metrics")
			return
		}
		page.ServeHTTP(w, r)
	})
	if token == "" && !local {
		return pages
	}
	return demand(pages, token)
}

// demand lets in only those who bring one of the tokens; empty ones do not count.
// Without any it serves loopback names, for programs on this machine: a page in
// a browser comes by another name, or is a cross-origin request.
func demand(next http.Handler, tokens ...string) http.Handler {
	var sums [][sha256.Size]byte
	for _, t := range tokens {
		if t != "" {
			sums = append(sums, sha256.Sum256([]byte(t)))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case len(sums) == 0 && !loopback.Host(r.Host):
			refuse(w, r, http.StatusForbidden, "host", "Wrong host", "without a token the admin endpoint answers only to loopback names: use 127.0.0.1 or localhost, or set a token")
		case len(sums) > 0 && !brings(r, sums):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "unauthorized", "Unauthorized", "send the admin token as Authorization: Bearer TOKEN")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// brings reports whether a request has a token of one of the sums. It compares
// with all of them, in the same time whichever it is.
func brings(r *http.Request, sums [][sha256.Size]byte) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum, same := sha256.Sum256([]byte(given)), 0
	for _, s := range sums {
		same |= subtle.ConstantTimeCompare(sum[:], s[:])
	}
	return ok && same == 1
}
