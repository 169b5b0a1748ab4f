package serve

import (
	"context"
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

// exposed logs what it means that the gateway listens beyond loopback, once for
// each meaning: the choice is the operator's, and should be one. It is called with
// every policy file that is about to be in charge.
func (s *server) exposed(file *policyfile.File) {
	if s.local() {
		return
	}
	said, level := "the gateway listens beyond loopback: who reaches it calls its dependencies, so let only its callers reach it; "+
		"to keep it to this machine, listen on a loopback address (--listen or gateway.listen)", slog.LevelInfo
	if holdsCredentials(file) {
		said, level = "the gateway listens beyond loopback and adds credentials of its own: who reaches it spends them, so let only its callers reach it; "+
			"to keep it to this machine, listen on a loopback address (--listen or gateway.listen)", slog.LevelWarn
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
