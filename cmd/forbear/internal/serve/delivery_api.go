package serve

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/policyfile"
)

// mount puts the API before the gateway, where both share an address.
func (d *delivery) mount(next http.Handler) http.Handler {
	if d.service == nil && d.why == "" && !d.off {
		return d.explain(next)
	}
	if d.service == nil || d.listen != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") && !d.claimed(r.Host) {
			d.service.Handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// claims records what the gateway's routes take as a whole: everything, by the
// prefix "/", or a host. There the API steps back, for a request to /v1 of an
// upstream must not end here; --api gives the API an address of its own.
func (d *delivery) claims(routes []policyfile.Route, log *slog.Logger) {
	taken := map[string]bool{}
	for _, r := range routes {
		if r.Prefix == "/" && r.Host == "" {
			taken["*"] = true
		}
		if r.Host != "" {
			taken[strings.ToLower(r.Host)] = true
		}
		if r.Host == "" && policyfile.DeliveryPrefix(r.Prefix) { // there is no API, see clash
			taken["*"] = true
		}
	}
	d.taken.Store(&taken)
	if taken["*"] && d.on() && d.listen == "" {
		log.Info("the route / also takes /v1: the delivery API needs an address of its own, see --api")
	}
}

// claimed reports whether a route takes all requests to a host, given as in the
// Host header, with or without a port.
func (d *delivery) claimed(host string) bool {
	taken := d.taken.Load()
	if taken == nil || len(*taken) == 0 {
		return false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return (*taken)["*"] || (*taken)[strings.ToLower(host)]
}

// servable refuses a file that serve could not serve: without routes, or with one
// that the API would hide. A process that delivers may have no gateway section: then
// it serves the API, and nothing else.
func (d *delivery) servable(file *policyfile.File) error {
	if d.on() && !file.HasGateway() {
		return nil
	}
	err := file.Servable(d.on() && d.listen == "")
	if e, ok := errors.AsType[*policyfile.Error](err); ok {
		for _, f := range e.Faults {
			if f.Field == "prefix" {
				f.Message += "; it is on because of this: " + d.why
			}
		}
	}
	return err
}

// explain responds to requests to the API where there is none, and no route that
// would take them: a caller from before must learn how to have it back.
func (d *delivery) explain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || d.claimed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		problem.Write(w, problem.Problem{
			Type: problem.Namespace + "no-delivery", Title: "No deliveries", Status: http.StatusNotFound,
			Detail:   "this gateway delivers nothing, since nothing asked it to: forbear serve --database " + database.Default + " does",
			Instance: r.URL.EscapedPath(), CorrelationID: inbound.Correlation(r.Header),
		})
	})
}
