//go:build unix

package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
