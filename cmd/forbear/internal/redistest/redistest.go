// Package redistest gives tests a Redis of their own, from the machine's binary.
// A fake would agree with our own idea of its scripts and expiries, which is what
// the tests are to check.
package redistest

import (
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/porttest"
)

// Start starts Debian's redis-server on a free port, without a file, and returns
// its address. The server ends with the test.
func Start(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is missing: apt-get install redis-server")
	}
	port := strconv.Itoa(porttest.Free(t))
	address := net.JoinHostPort("127.0.0.1", port)
	server := exec.Command(binary, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	//forbear:ignore FB1001,FB1011,FB1012,FB1054 no call has failed: the server is starting
	for range 2400 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return address
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("redis-server does not respond")
	return ""
}
