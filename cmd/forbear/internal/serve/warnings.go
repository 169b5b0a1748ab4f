package serve

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/policyfile"
)

// local reports whether the gateway listens on loopback alone.
func (s *server) local() bool {
	return strings.HasPrefix(s.address, "unix:") || loopback.Host(s.address)
}

// warnOfExposure logs what it means that the gateway listens beyond loopback, once for
// each meaning: the choice is the operator's, and should be one. It is called with
// every policy file that is about to be in charge.
func (s *server) warnOfExposure(file *policyfile.File) {
	if s.local() {
		return
	}
	said, level := "the gateway listens beyond loopback: anyone who can reach it can call its dependencies: restrict access; "+
		"for this machine only, set --listen or gateway.listen to a loopback address", slog.LevelInfo
	if holdsCredentials(file) {
		said, level = "the gateway listens beyond loopback and adds credentials: anyone who can reach it can call its dependencies with them: restrict access; "+
			"for this machine only, set --listen or gateway.listen to a loopback address", slog.LevelWarn
	}
	if said == s.said {
		return
	}
	s.said = said
	instead := "127.0.0.1"
	if _, port, err := net.SplitHostPort(s.address); err == nil {
		instead = net.JoinHostPort(instead, port)
	}
	s.log.Log(context.Background(), level, said, slog.String("address", s.address), slog.String("instead", "--listen "+instead))
}

// holdsCredentials reports whether a route adds an Authorization of the gateway's.
func holdsCredentials(file *policyfile.File) bool {
	return slices.ContainsFunc(file.Gateway.Routes, func(r policyfile.Route) bool {
		dep, _ := file.Dependency(r.Dependency)
		return !reflect.ValueOf(dep.Credentials).IsZero()
	})
}

// warnOfOwners logs which dependencies get a single attempt because another service is to
// retry their calls: the policy says so in one word, and a caller sees it when a
// call has failed.
func (s *server) warnOfOwners(file *policyfile.File) {
	for _, dep := range file.Dependencies {
		if owner := dep.Policy.Owner; owner != "" && file.Service != "" && owner != file.Service {
			s.log.Warn("calls to a dependency are not retried here: owner names another service; if no other service retries them, set owner to this one",
				slog.String("dependency", dep.Name), slog.String("owner", owner), slog.String("service", file.Service))
		}
	}
}

// warnOfBodies logs which routes keep longer bodies than there is memory for.
func (s *server) warnOfBodies(file *policyfile.File) {
	for _, r := range file.Gateway.Routes {
		if int64(r.BodyLimit) > s.bodies.Limit() {
			s.log.Warn("a body up to the route's body_limit does not fit into the memory for bodies, and is sent once: lower body_limit, or raise GOMEMLIMIT, of which a quarter is for bodies",
				slog.String("route", r.Host+r.Prefix), slog.Int64("body_limit", int64(r.BodyLimit)), slog.Int64("memory", s.bodies.Limit()))
		}
	}
}

// warnOfFlags logs the flags that a later version will refuse.
func (s *server) warnOfFlags() {
	s.given.Visit(func(f *flag.Flag) {
		if f.Name == "drain" {
			s.log.Warn("deprecated flag: use --drain-timeout instead of --drain, which v0.2.0 refuses")
		}
	})
}

// warnOfKeys logs the keys that a later version will refuse.
func (s *server) warnOfKeys(file *policyfile.File) {
	for _, d := range file.Deprecated {
		s.log.Warn("deprecated key in the policy file", slog.String("key", d.Error()))
	}
}
