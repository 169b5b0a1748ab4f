package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/internal/wait"
)

// Bouncer starts a PgBouncer in front of the server of a database, by its URL, and
// returns the URL that leads through it. mode is its pool_mode. It ends with the test.
func Bouncer(t testing.TB, behind, mode string) string {
	t.Helper()
	ringtest.NotQuick(t, "starts a PgBouncer")
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		const install = "PgBouncer is not installed: sudo apt-get install pgbouncer"
		if os.Getenv("CI") == "true" {
			t.Fatal(install)
		}
		t.Skip("NOT RUN: " + install)
	}
	u, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "forbear-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := &Server{dir: dir}
	if os.Geteuid() == 0 { // it refuses root
		if err := as.unprivileged(); err != nil {
			t.Fatal(err)
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	_, port, _ := net.SplitHostPort(address)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=forbear\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = %s\nmax_client_conn = 500\ndefault_pool_size = 100\n",
		u.Hostname(), u.Port(), port, mode)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.cred, Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	_ = log.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for wait.Sleep(ctx, wait.Jitter(100*time.Millisecond)) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			u.Host = address
			return u.String()
		}
	}
	said, _ := os.ReadFile(log.Name())
	t.Fatalf("PgBouncer does not respond:\n%s", said)
	return ""
}
