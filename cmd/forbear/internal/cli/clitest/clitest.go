// Package clitest runs forbear's commands in tests: in the process of the test,
// under its context, and with all that they write at hand. What only a process
// can show, such as signals, is tested with the binary, beside main.
package clitest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Result is what a run of a command came to.
type Result struct {
	Code        int
	Out, Errors string
}

// Run runs a command in this process. args are those after its name. It ends with
// the test at the latest, whose context it gets.
func Run(t testing.TB, c *cli.Command, stdin string, args ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	code := c.Run(t.Context(), &cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, args)
	return Result{code, out.String(), errs.String()}
}

// Words splits a command line as a shell does, as far as single quotes go: enough
// for the examples of the manuals and guides, which tests run as they stand.
func Words(line string) (args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// File writes a file of that name into a folder of the test's own and returns its
// path.
func File(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Buffer may be written and read at the same time: a test reads the log of a
// serve that is still running.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
