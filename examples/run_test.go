// Package examples starts the examples as their users do, and looks at what they print.
package examples

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/race"
)

// names are the examples that are Go programs.
var names = []string{"http", "do", "grpc", "server", "consumer", "outbox", "ci"}

// limit is for all that an example waits for: they take a second or two.
const limit = 60 * time.Second

// bin has the examples, built once.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "forbear-examples-")
	if err != nil {
		log.Fatal(err)
	}
	bin = dir
	args := []string{"build", "-o", dir + "/"}
	if race.Enabled {
		args = append(args, "-race")
	}
	for _, name := range names {
		args = append(args, "./"+name)
	}
	code := 1
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		fmt.Printf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program is an example that runs. All that it prints is kept, and what goes to its
// standard output apart.
type program struct {
	cmd  *exec.Cmd
	done chan error

	mu       sync.Mutex
	all, out bytes.Buffer
}

// start starts a program, which the test's end ends.
func start(t *testing.T, env []string, name string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	p := &program{cmd: exec.CommandContext(ctx, name, args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = both{p, true}, both{p, false}
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		p.done <- p.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("%s printed\n%s", filepath.Base(name), p.printed())
		}
	})
	return p
}

// example starts one of the examples.
func example(t *testing.T, name string, env ...string) *program {
	t.Helper()
	return start(t, env, filepath.Join(bin, name))
}

// both writes into all, and what is standard output into out.
type both struct {
	p   *program
	out bool
}

func (b both) Write(text []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.out {
		b.p.out.Write(text)
	}
	return b.p.all.Write(text)
}

// printed returns what the program has printed so far, on both streams.
func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// output returns what it has printed to its standard output.
func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// until waits for a text.
func (p *program) until(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(p.printed(), text) {
			return
		}
		select {
		case err := <-p.done:
			p.done <- err
			if !strings.Contains(p.printed(), text) {
				t.Fatalf("it ended before it printed %q: %v", text, err)
			}
		default:
		}
	}
	t.Fatalf("it did not print %q", text)
}

// ends waits for the end, which is to be a good one, and returns what was printed.
func (p *program) ends(t *testing.T) string {
	t.Helper()
	if err := <-p.done; err != nil {
		t.Fatalf("it ended with %v", err)
	}
	return p.printed()
}

// interrupt is Ctrl-C.
func (p *program) interrupt(t *testing.T) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	return p.ends(t)
}

// has looks for lines in what was printed, each as often as it is given.
func has(t *testing.T, printed string, lines map[string]int) {
	t.Helper()
	for line, want := range lines {
		if got := strings.Count(printed, line); got != want {
			t.Errorf("it printed %q %d times, want %d", line, got, want)
		}
	}
}
