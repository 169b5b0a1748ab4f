//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// activated starts serve as systemd does: with sockets from descriptor 3 on, and a
// socket for notifications. A shell stands in for systemd, since LISTEN_PID is the
// number of the process itself.
func activated(t *testing.T, names string, listeners []net.Listener, args ...string) (s *served, notified func(want string)) {
	t.Helper()
	dir := shortFolder(t)
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { notify.Close() })
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"`, "sh", builtProgram(t), "serve", "--no-delivery"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", len(listeners)), "LISTEN_FDNAMES="+names, "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=400000")
	for _, l := range listeners {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	s = run(t, cmd)
	return s, func(want string) {
		t.Helper()
		b := make([]byte, 1024)
		for {
			_ = notify.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := notify.Read(b)
			if err != nil {
				t.Fatalf("no notification %s: %v\n%s", want, err, s.log)
			}
			if strings.Contains(string(b[:n]), want) {
				return
			}
		}
	}
}

// Sockets of systemd are served, before and after a handover, which systemd is told
// the new main process of; and it hears of readiness, reload and end.
func TestSystemd(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	dir := shortFolder(t)
	path, write := policyOver(t, up.URL, "127.0.0.1:1") // not used: sockets are passed
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	local, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s, notified := activated(t, "web:local", []net.Listener{web, local}, "--config", path, "--reload-every", "0", "--drain-delay", "0")
	notified("READY=1")
	both := func() {
		t.Helper()
		for _, to := range []string{"tcp " + web.Addr().String(), "unix " + local.Addr().String()} {
			if status, body, _, err := ask(to, "/x"); status != 200 || body != "/x" || err != nil {
				t.Errorf("%s: %d %q, %v", to, status, body, err)
			}
		}
	}
	both()
	if strings.Contains(s.log.String(), "beyond loopback") {
		t.Errorf("sockets that only this machine reaches are called open:\n%s", s.log)
	}
	notified("WATCHDOG=1")
	write("127.0.0.1:1", ", max_retries: 1")
	s.signal(t, syscall.SIGHUP)
	notified("RELOADING=1\nMONOTONIC_USEC=")
	notified("READY=1")
	s.signal(t, syscall.SIGUSR2)
	s.logs(t, "successor=")
	pid := successors.FindStringSubmatch(s.log.String())[1]
	notified("MAINPID=" + pid)
	if code := s.wait(t); code != 0 { // systemd follows, and so this one need not stay
		t.Errorf("the first process ended with %d:\n%s", code, s.log)
	}
	both()
	for range 50 { // the first one has sent fewer, and ended
		notified("WATCHDOG=1")
	}
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	notified("STOPPING=1")
	s.await(t, "the end of the successor", func() bool { return syscall.Kill(n, 0) != nil || zombie(pid) })
	if _, err := os.Lstat(filepath.Join(dir, "s")); err != nil {
		t.Errorf("the file of a socket that is systemd's was removed: %v", err)
	}
}

// zombie reports whether a process has ended and no one has asked how.
func zombie(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// Of several sockets, those of a name.
func TestSystemdByName(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	path, _ := policyOver(t, up.URL, "systemd:web")
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		listeners = append(listeners, l)
	}
	s, notified := activated(t, "other:web", listeners, "--listen", "systemd:web", "--config", path, "--drain-delay", "0")
	notified("READY=1")
	if s.base != "http://"+listeners[1].Addr().String() {
		t.Errorf("serves %s, want %s", s.base, listeners[1].Addr())
	}
	s.logs(t, `socket=systemd:other`)
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d", code)
	}
}
