package pgtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// shared is the one server of the test binary. It starts when the first test asks.
var shared struct {
	once    sync.Once
	open    bool                   // whether Main will end it
	migrate func(url string) error // fills the template
	server  *Server
	err     error
}

// template is the database that each test gets a copy of.
const template = "forbear_template"

// Main runs the tests of a package that share a server, ends the server and returns
// the exit code: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, nil)) }. The
// server starts only when a test asks for it. Migrate, unless nil, runs once, on the
// database that is copied for each test; it must close its connections.
func Main(m *testing.M, migrate func(url string) error) int {
	shared.open, shared.migrate = true, migrate
	code := m.Run()
	if shared.server != nil {
		shared.server.end()
	}
	return code
}

// Shared returns the server that the tests of this binary share. A test may not halt
// or freeze it, and makes no role that another test could make.
func Shared(t testing.TB) *Server {
	t.Helper()
	ringtest.NotQuick(t, "needs PostgreSQL")
	if !shared.open {
		t.Fatal("pgtest.Main does not run the tests of this package: no one would end the server")
	}
	shared.once.Do(func() { shared.server, shared.err = startShared() })
	if errors.Is(shared.err, errMissing) {
		missing(t)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func startShared() (*Server, error) {
	s, err := start(nil)
	if err != nil || shared.migrate == nil {
		return s, err
	}
	if err := s.exec("CREATE DATABASE " + template); err != nil {
		s.end()
		return nil, err
	}
	if err := shared.migrate(s.URL(template)); err != nil {
		s.end()
		return nil, fmt.Errorf("migrate the template: %w", err)
	}
	return s, nil
}

// Database returns the URL of a new database on the shared server: a copy of what
// Main's migrate has made. For an empty one, ask [Shared] for a [Server.Database].
func Database(t testing.TB) string {
	t.Helper()
	s := Shared(t)
	if shared.migrate == nil {
		return s.Database(t)
	}
	return s.copy(t, template)
}
