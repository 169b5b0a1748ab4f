package health

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// The exit code is what a container's health check looks at.
func TestHealth(t *testing.T) {
	status := http.StatusOK
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(r.URL.Path + "\n"))
	})
	srv := httptest.NewServer(h)
	dir, err := os.MkdirTemp("", "fb") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(local, h) }()
	defer local.Close()

	if got := clitest.Run(t, Command(), "", srv.URL+"/health/ready"); got.Code != cli.ExitOK || got.Out != "200 /health/ready\n" {
		t.Errorf("healthy: %+v", got)
	}
	if got := clitest.Run(t, Command(), "", "unix:"+path); got.Code != cli.ExitOK || got.Out != "200 /health/ready\n" {
		t.Errorf("by a unix socket: %+v", got)
	}
	status = http.StatusServiceUnavailable
	if got := clitest.Run(t, Command(), "", srv.URL+"/x"); got.Code != cli.ExitFound || got.Out != "503 /x\n" {
		t.Errorf("draining: %+v", got)
	}
	srv.Close()
	if got := clitest.Run(t, Command(), "", srv.URL); got.Code != cli.ExitFound || !strings.Contains(got.Errors, "refused") {
		t.Errorf("gone: %+v", got)
	}
	if got := clitest.Run(t, Command(), "", "ftp://x"); got.Code != cli.ExitUsage {
		t.Errorf("not a URL for it: %+v", got)
	}
}
