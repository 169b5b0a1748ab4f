//go:build unix

package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// folder returns a short path: a socket's has at most 103 bytes.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "fb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestUnixSockets(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(folder(t), "gateway.sock")
	for _, mode := range []os.FileMode{0, 0o600, 0o666} {
		s := &Sockets{Mode: mode}
		l, err := s.One(t.Context(), "gateway", "unix:"+path)
		if err != nil {
			t.Fatal(err)
		}
		want := mode
		if want == 0 {
			want = 0o660
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("the socket's file: %v, %v, want mode %o", info, err, want)
		}
		if c, err := net.Dial("unix", path); err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
		// A live one is refused, and stays as it is.
		if _, err := (&Sockets{}).One(t.Context(), "gateway", "unix:"+path); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener on a live socket: %v", err)
		}
		if c, err := net.Dial("unix", path); err != nil {
			t.Errorf("after a refusal: %v", err)
		} else {
			c.Close()
		}
		_ = l
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there after the end: %v", err)
		}
	}
}

// The file of a process that is dead is replaced.
func TestStaleUnixSocket(t *testing.T) {
	path := filepath.Join(folder(t), "gateway.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	s := &Sockets{}
	if _, err := s.One(t.Context(), "gateway", "unix:"+path); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	// Another process has replaced the file: it is not ours to remove.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := &Sockets{}
	if _, err := other.One(t.Context(), "gateway", "unix:"+path); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the file of another process was removed: %v", err)
	}
	other.Close()
}

// An abstract socket has no file, and ends with its process.
func TestAbstractSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there are none
	}
	name := fmt.Sprintf("@forbear-test-%d", os.Getpid())
	s := &Sockets{}
	for range 2 { // the second time it is free again
		if _, err := s.One(t.Context(), "gateway", "unix:"+name); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Sockets{}).One(t.Context(), "gateway", "unix:"+name); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		c, err := net.Dial("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		s.Close()
	}
}

// What is no socket is never removed.
func TestUnixSocketOverAFile(t *testing.T) {
	path := filepath.Join(folder(t), "policy.yaml")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Sockets{}).One(t.Context(), "gateway", "unix:"+path); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// Where one of several addresses cannot be had, none stays open.
func TestListenOnSeveral(t *testing.T) {
	path := filepath.Join(folder(t), "a.sock")
	s := &Sockets{}
	if _, err := s.Listen(t.Context(), "gateway", "unix:"+path, "nowhere"); err == nil {
		t.Error("an address without a port is no fault")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the first is open: %v", err)
	}
	list, err := s.Listen(t.Context(), "gateway", "unix:"+path, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil || len(list) != 3 || list[1].Addr().String() == list[2].Addr().String() {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := s.One(t.Context(), "admin", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close("gateway"); err != nil {
		t.Error(err)
	}
	if files, names, err := s.Files(); err != nil || len(files) != 1 || names[0] != "admin 127.0.0.1:0" {
		t.Errorf("left are %v, %v", names, err)
	} else {
		files[0].Close()
	}
	s.Close()
}

// helper is what a process of TestPassed does with its sockets, by the environment.
func TestMain(m *testing.M) {
	ask := os.Getenv("HANDOVER_TEST_ASK")
	if ask == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("LISTEN_PID") == "self" { // no parent knows it beforehand
		_ = os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
	}
	s, err := Passed(strings.FieldsFunc(os.Getenv("HANDOVER_TEST_NAMES"), func(r rune) bool { return r == ',' }))
	if err != nil {
		fmt.Print("error: ", err)
		return
	}
	list, err := s.Listen(context.Background(), "gateway", strings.Split(ask, ",")...)
	if err != nil {
		fmt.Print("error: ", err)
		return
	}
	for _, l := range list {
		fmt.Print(l.Addr(), " ")
	}
	fmt.Print("unused ", s.Commit(), " left ", os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID"))
}

func TestPassed(t *testing.T) {
	dir := folder(t)
	var files []*os.File
	var addresses []string
	for _, a := range []string{"tcp 127.0.0.1:0", "tcp 127.0.0.1:0", "unix " + dir + "/s"} {
		network, address, _ := strings.Cut(a, " ")
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files, addresses = append(files, f), append(addresses, l.Addr().String())
	}
	a, b, c := addresses[0], addresses[1], addresses[2]
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, tt := range []struct {
		name, ask string
		env       []string
		files     []*os.File
		want      string
	}{
		{"all of systemd", "systemd:", []string{"LISTEN_PID=self", "LISTEN_FDS=3"}, files, a + " " + b + " " + c + " unused [] left "},
		{"by name", "systemd:web", []string{"LISTEN_PID=self", "LISTEN_FDS=3", "LISTEN_FDNAMES=other:web:web"}, files, b + " " + c + " unused [systemd:other] left "},
		{"no such name", "systemd:web", []string{"LISTEN_PID=self", "LISTEN_FDS=1", "LISTEN_FDNAMES=other"}, files, "error: systemd:web: systemd passed no such socket"},
		{"another process's", "systemd:", []string{"LISTEN_PID=1", "LISTEN_FDS=3"}, files, "error: systemd:: systemd passed no such socket"},
		{"a bad number", "systemd:", []string{"LISTEN_PID=self", "LISTEN_FDS=-1"}, files, "error: systemd:: systemd passed no such socket"},
		{"no socket", "systemd:", []string{"LISTEN_PID=self", "LISTEN_FDS=1", "LISTEN_FDNAMES=web"}, []*os.File{plain}, "error: socket systemd:web does not listen"},
		{"more than there are", "systemd:", []string{"LISTEN_PID=self", "LISTEN_FDS=9"}, files, "does not listen"},
		{"from a predecessor", "127.0.0.1:0,unix:" + c, []string{"HANDOVER_TEST_NAMES=gateway 127.0.0.1:0,admin 127.0.0.1:0,gateway unix:" + c}, files, a + " " + c + " unused [admin 127.0.0.1:0] left "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), append(tt.env, "HANDOVER_TEST_ASK="+tt.ask)...)
			cmd.ExtraFiles = tt.files
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %s, %v, want %s", out, err, tt.want)
			}
		})
	}
	if conn, err := net.Dial("tcp", a); err != nil {
		t.Errorf("the sockets do not outlive those that took them: %v", err)
	} else {
		conn.Close()
	}
}

// A listener that was passed on still ends at once when it is closed, also after a
// process was started with its copy and connections came: the copy must not have put
// it into blocking mode.
func TestPassedOnListenerCloses(t *testing.T) {
	s := &Sockets{}
	path := filepath.Join(folder(t), "s")
	l, err := s.One(t.Context(), "gateway", "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			c.Close()
		}
	}()
	files, _, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("true")
	cmd.ExtraFiles = files
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	files[0].Close()
	for range 3 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Read(make([]byte, 1)) // until it was accepted, and closed
		c.Close()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("Close hangs: the listener is in blocking mode")
	}
}
