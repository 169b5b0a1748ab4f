package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// Replicating are the settings of a server that has a standby, and of its standby.
var Replicating = []string{"wal_level=replica", "max_wal_senders=10"}

// Standby starts a copy of a server, which was started with [Replicating], that follows it
// until it is promoted. From then on a commit of the server waits for the standby. It ends
// with the test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	ringtest.NotQuick(t, "starts a PostgreSQL")
	dir, err := os.MkdirTemp(memory(), fmt.Sprintf("forbear-pg-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	b := &Server{dir: dir, bin: s.bin, settings: Replicating, cred: s.cred}
	t.Cleanup(b.end)
	if b.cred != nil {
		if err := os.Chown(dir, int(b.cred.Uid), int(b.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if b.port, err = porttest.Pick(); err != nil {
		t.Fatal(err)
	}
	copied := b.command("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "forbear")
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	b.Boot(t)
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	s.Exec(t, "SELECT pg_reload_conf()")
	return b
}

// Promote makes a standby a server of its own. Its commits wait for no one.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "SELECT pg_promote(true, 60)")
}

// Address returns host and port.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }
