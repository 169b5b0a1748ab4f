// Package postgres starts a PostgreSQL server of a benchmark's own, from the
// machine's binaries, with fsync on.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Server is a running PostgreSQL.
type Server struct {
	cmd  *exec.Cmd
	port int
	db   *sql.DB
}

// Start starts a server in a folder of its own below dir, on a free port of the
// loopback interface.
func Start(ctx context.Context, dir string) (*Server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, filepath.Dir(path))
	}
	if len(found) == 0 {
		return nil, errors.New("PostgreSQL is not installed: sudo apt-get install postgresql (or choose other databases)")
	}
	slices.Sort(found)
	bin := found[len(found)-1]
	folder := filepath.Join(dir, "postgres")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	cred, err := unprivileged(dir, folder)
	if err != nil {
		return nil, err
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = folder
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGQUIT}
		return cmd
	}
	data := filepath.Join(folder, "data")
	if out, err := command("initdb", "-D", data, "-U", "forbear", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Server{port: l.Addr().(*net.TCPAddr).Port}
	if err := l.Close(); err != nil {
		return nil, err
	}
	p.cmd = command("postgres", "-D", data, "-p", strconv.Itoa(p.port), "-k", folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=128MB", "-c", "max_wal_size=2GB")
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if p.db, err = sql.Open("pgx", p.URL("postgres")); err != nil {
		p.Stop()
		return nil, err
	}
	for range 300 {
		if err = p.db.PingContext(ctx); err == nil {
			return p, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Stop()
	return nil, fmt.Errorf("PostgreSQL does not respond: %w", err)
}

// unprivileged finds somebody for PostgreSQL to run as, which refuses root, and
// gives them the folder. It returns nil where it is not needed.
func unprivileged(parent, folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		cred := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return cred, errors.Join(os.Chmod(parent, 0o711), os.Chown(folder, uid, gid))
	}
	return nil, errors.New("no unprivileged user to run PostgreSQL as")
}

// PID is the id of the server's first process.
func (p *Server) PID() int { return p.cmd.Process.Pid }

// DB is a pool of connections to the server, of a user who may do everything.
func (p *Server) DB() *sql.DB { return p.db }

// Open opens a pool of connections to a database, by its address.
func (*Server) Open(url string) (*sql.DB, error) { return sql.Open("pgx", url) }

// URL returns the address of a database.
func (p *Server) URL(database string) string {
	return fmt.Sprintf("postgres://forbear@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

// Create makes an empty database.
func (p *Server) Create(ctx context.Context, name string) (url string, err error) {
	_, err = p.db.ExecContext(ctx, "CREATE DATABASE "+name)
	return p.URL(name), err
}

// Remove drops a database.
func (p *Server) Remove(ctx context.Context, name string) {
	_, _ = p.db.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)") // the folder goes anyway
	_, _ = p.db.ExecContext(ctx, "CHECKPOINT")                          // what one turn left to write is not the next one's
}

// Stop ends the server.
func (p *Server) Stop() {
	if p.db != nil {
		_ = p.db.Close()
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
}
