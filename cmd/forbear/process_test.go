package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// The built binary: a signal lets the call under way finish and ends it with 0.
func TestServeBinary(t *testing.T) {
	cmd := exec.Command(builtProgram(t), "serve", "--listen", "127.0.0.1:0", "--database", filepath.Join(t.TempDir(), "forbear.db"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &clitest.Buffer{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	greeting := make([]byte, 4096)
	n, err := out.Read(greeting)
	if err != nil {
		t.Fatalf("serve did not start: %v: %s", err, log)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(greeting[:n]))
	// The stream takes a second; its first event says that it is under way.
	resp, err := http.Get(base + "/flaky/stream/5")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "event 1 of 5") {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), "event 5 of 5") {
		t.Errorf("the call under way was cut off: %v: %q", err, rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, log)
	}
}
