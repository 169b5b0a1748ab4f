//go:build unix

package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	dir, err := os.MkdirTemp("", "fb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("NOTIFY_SOCKET", "")
	if n := New(); n.On() || n.Ready() != nil {
		t.Error("without a socket something is sent")
	}
	path := filepath.Join(dir, "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := New().Ready(); err == nil {
		t.Error("a socket that is not there is no error")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := New()
	for want, say := range map[string]func() error{
		"READY=1":                      n.Ready,
		"STOPPING=1":                   n.Stopping,
		"WATCHDOG=1":                   n.Alive,
		"RELOADING=1\nMONOTONIC_USEC=": n.Reloading,
		"MAINPID=42\nREADY=1":          func() error { return n.Main(42) },
	} {
		if err := say(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 256)
		if k, err := conn.Read(b); err != nil || !strings.HasPrefix(string(b[:k]), want) {
			t.Errorf("got %q, %v, want %q", b[:k], err, want)
		}
	}
}

// The time of the watchdog is the named process's, and that of the one which has taken
// its place.
func TestWatchdog(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/nowhere")
	for _, c := range []struct {
		usec, pid string
		heir      bool
		want      time.Duration
	}{
		{"", "", false, 0},
		{"x", "", false, 0},
		{"30000000", "", false, 30 * time.Second},
		{"30000000", strconv.Itoa(os.Getpid()), false, 30 * time.Second},
		{"30000000", "1", false, 0},
		{"30000000", "1", true, 30 * time.Second},
	} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := New().Watchdog(c.heir); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if New().Watchdog(true) != 0 {
		t.Error("without a socket there is a watchdog")
	}
}
