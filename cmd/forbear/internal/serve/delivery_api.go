package serve

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
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

// claims records the gateway's routes. Where one of them takes everything, or all of a host,
// the API steps back: a request for /v1 of an upstream must not end here. --api gives the API
// an address of its own.
func (d *delivery) claims(routes []policyfile.Route, log *slog.Logger) {
	d.routes.Store(&routes)
	if d.on() && d.listen == "" && d.claimed("") {
		log.Info("the route / also covers /v1: give the delivery API its own address with --api")
	}
}

// claimed reports whether a route takes all requests to a host, given as in the
// Host header, with or without a port.
func (d *delivery) claimed(host string) bool {
	routes := d.routes.Load()
	if routes == nil {
		return false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.ContainsFunc(*routes, func(r policyfile.Route) bool {
		if r.Host != "" {
			return strings.EqualFold(r.Host, host)
		}
		return r.Prefix == "/" || policyfile.DeliveryPrefix(r.Prefix) // with the latter there is no API: see servable
	})
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
				f.Message += "; it is on because of " + d.why
			}
		}
	}
	return err
}

// explain responds to requests for the API where nothing is delivered and no route takes
// them: the caller learns how to switch the API on.
func (d *delivery) explain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || d.claimed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		problem.Write(w, problem.Problem{
			Type: problem.Namespace + "no-delivery", Title: "No deliveries", Status: http.StatusNotFound,
			Detail:   "deliveries are off: start forbear serve with --database " + database.Default,
			Instance: r.URL.EscapedPath(), CorrelationID: inbound.Correlation(r.Header),
		})
	})
}
