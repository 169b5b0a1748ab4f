package browser

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

var (
	program = flag.String("program", "", "the forbear `file` to test (default: built from this repository)")
	root    string // of the repository
	scratch string // a folder of this run
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		root, _ = filepath.Abs("../../..")
		if scratch, err = os.MkdirTemp("", "console"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(scratch)
		if *program == "" {
			*program = filepath.Join(scratch, "forbear")
			build := exec.Command("go", "build", "-o", *program, "./cmd/forbear")
			build.Dir, build.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v: %s", err, out)
				return 1
			}
		}
		defer closeBrowser()
		return pgtest.Main(m, func(url string) error { return exec.Command(*program, "migrate", "--database", url).Run() })
	}())
}

// instance is a running forbear serve.
type instance struct {
	gateway, admin string // base URLs
	database       string
	log            func() string
}

var (
	gatewayAt = regexp.MustCompile(`gateway on (http://127[0-9.:]+)`)
	adminAt   = regexp.MustCompile(`--admin (http://127[0-9.:]+)`)
)

// serve starts forbear serve with its sample on a database, until the test ends.
func serve(t *testing.T, database string, args ...string) *instance {
	t.Helper()
	cmd := exec.Command(*program, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--database", database, "--allow-target", "127.0.0.0/8",
	}, args...)...)
	cmd.Dir, cmd.SysProcAttr = t.TempDir(), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var text strings.Builder
	in := &instance{database: database, log: func() string { mu.Lock(); defer mu.Unlock(); return text.String() }}
	up, ended := make(chan bool, 1), make(chan bool)
	go func() {
		defer close(ended)
		defer out.Close()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			mu.Lock()
			text.WriteString(lines.Text() + "\n")
			mu.Unlock()
			if m := gatewayAt.FindStringSubmatch(lines.Text()); m != nil {
				in.gateway = m[1]
			}
			if m := adminAt.FindStringSubmatch(lines.Text()); m != nil {
				in.admin = m[1]
				up <- true
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("serve said:\n%s", in.log())
		}
	})
	select {
	case <-up:
	case <-ended:
		t.Fatalf("serve ended: %s", in.log())
	case <-time.After(time.Minute):
		t.Fatal("serve did not start within a minute")
	}
	return in
}

// run runs a forbear command on a database and returns what it prints.
func run(t *testing.T, database string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(*program, append(args, "--database", database)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("forbear %v: %v", args, err)
	}
	return out
}

// token makes a token of a scope.
func token(t *testing.T, database, name, scope string) string {
	t.Helper()
	var made struct{ Token string }
	if err := json.Unmarshal(run(t, database, "token", "create", name, "--scope", scope, "-o", "json"), &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

// call calls the API of an instance. A response of 400 or more fails the test.
func (in *instance) call(t *testing.T, token, method, path, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, in.gateway+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s, %v: %s", method, path, res.Status, err, data)
	}
	return data
}
