package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// process is a serve in a process of its own.
type process struct {
	cmd      *exec.Cmd
	base     string // http://127.0.0.1:port
	greeting string
	log      *clitest.Buffer
}

// command is the binary's serve in folder, under a umask. Variables of the test's
// own that would change what it does are left out.
func command(t *testing.T, folder, umask string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for one that should refuse to start and does not
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `umask "$1"; shift; exec "$@"`, "sh", umask, binary, "serve", "--drain-delay", "0s"}, args...)...)
	cmd.Dir = folder
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORBEAR_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// startProcess starts it and waits until it serves. It ends with the test, at the latest.
func startProcess(t *testing.T, folder, umask string, args ...string) *process {
	t.Helper()
	return startCommand(t, command(t, folder, umask, args...))
}

// startCommand starts a command as startProcess does.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, log: &clitest.Buffer{}}
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	text := make([]byte, 8192)
	n, err := out.Read(text)
	if err != nil {
		t.Fatalf("serve did not start: %v: %s", err, p.log)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	p.greeting = string(text[:n])
	p.base = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.greeting)
	return p
}

// stop ends it as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, p.log)
	}
}

// modes returns the permissions of the files in a folder.
func modes(t *testing.T, folder string) map[string]os.FileMode {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]os.FileMode{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = info.Mode().Perm()
	}
	return found
}

const wideOpen = "its mode is now 0600"

// The database and what SQLite keeps beside it are the owner's alone, under any
// umask. It holds response bodies and payloads.
func TestDatabaseIsItsOwnersAlone(t *testing.T) {
	for _, umask := range []string{"000", "022", "077", "277"} {
		t.Run(umask, func(t *testing.T) {
			folder := t.TempDir()
			p := startProcess(t, folder, umask, "--listen", "127.0.0.1:0", "--admin", "off")
			got := modes(t, folder)
			for _, name := range []string{"forbear.db", "forbear.db-wal", "forbear.db-shm"} {
				if mode, ok := got[name]; !ok || mode != 0o600 {
					t.Errorf("%s has mode %v, %v; want 0600", name, mode, ok)
				}
			}
			p.stop(t)
			if strings.Contains(p.log.String(), wideOpen) {
				t.Errorf("a new database is mended: %s", p.log)
			}
		})
	}
}

// A database of before, which others may read, is mended with what is beside it,
// and the log says so once.
func TestDatabaseOfBeforeIsMended(t *testing.T) {
	folder := t.TempDir()
	args := []string{"--listen", "127.0.0.1:0", "--admin", "off"}
	first := startProcess(t, folder, "022", args...)
	_ = first.cmd.Process.Kill() // so that its files beside the database stay
	_ = first.cmd.Wait()
	for name := range modes(t, folder) {
		if err := os.Chmod(filepath.Join(folder, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{1, 0} {
		p := startProcess(t, folder, "022", args...)
		for name, mode := range modes(t, folder) {
			if mode != 0o600 {
				t.Errorf("start %d: %s has mode %v", i+1, name, mode)
			}
		}
		p.stop(t)
		if n := strings.Count(p.log.String(), wideOpen); n != want {
			t.Errorf("start %d: %d lines about it, want %d: %s", i+1, n, want, p.log)
		}
	}
}

// another is what runs a command as another user than root, for whom permissions
// count; where the tests run as any other user it is nil.
func another() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// place is a folder that every user may enter.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "forbear-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What cannot be used is refused in words that name the way out: a folder that
// cannot be written to, with a database in it or without, and a database of
// another owner that others may read.
func TestDatabaseThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		prepare func(t *testing.T, folder string)
		want    []string
	}{
		{"a folder that is read-only", nil, func(t *testing.T, folder string) {
			if err := os.Chmod(folder, 0o555); err != nil {
				t.Fatal(err)
			}
		}, []string{"cannot write to the folder", "--database", "FORBEAR_DATABASE"}},
		{"one that a gateway could do without", []string{"--config", "policy.yaml", "--allow-target", "127.0.0.0/8"}, func(t *testing.T, folder string) {
			policy := filepath.Join(folder, "policy.yaml")
			write(t, policy, egressPolicy("http://127.0.0.1:9", "/search", ""))
			for name, mode := range map[string]os.FileMode{policy: 0o644, folder: 0o555} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{"cannot write to the folder", "--database", "FORBEAR_DATABASE", "--no-delivery"}},
		{
			"a folder that is not there",
			[]string{"--database", "gone/forbear.db"},
			func(*testing.T, string) {},
			[]string{"does not exist", "gone", "--database"},
		},
		{"a database in a folder that is read-only", nil, func(t *testing.T, folder string) {
			if err := os.WriteFile(filepath.Join(folder, "forbear.db"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if os.Getuid() == 0 {
				if err := os.Chown(filepath.Join(folder, "forbear.db"), 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(folder, 0o555); err != nil {
				t.Fatal(err)
			}
		}, []string{"cannot write to the folder", "--database", "FORBEAR_DATABASE"}},
		{"a database of another owner", nil, func(t *testing.T, folder string) {
			if err := os.WriteFile(filepath.Join(folder, "forbear.db"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, mode := range map[string]os.FileMode{"forbear.db": 0o666, ".": 0o777} {
				if err := os.Chmod(filepath.Join(folder, name), mode); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{"forbear.db", "0666", "other users", "chmod 600", "--database"}},
	} {
		if tt.name == "a database of another owner" && another() == nil {
			continue // only root can make one
		}
		t.Run(tt.name, func(t *testing.T) {
			folder := place(t)
			tt.prepare(t, folder)
			cmd := command(t, folder, "022", append([]string{"--listen", "127.0.0.1:0", "--admin", "off"}, tt.args...)...)
			cmd.SysProcAttr = another()
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != 2 {
				t.Errorf("ended with %v, want exit code 2", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the error lacks %q: %s", want, out)
				}
			}
		})
	}
}
