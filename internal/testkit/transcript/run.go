//go:build unix

package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Session runs the blocks of one document.
type Session struct {
	Dir   string   // where terminals begin, and files are written
	Clone string   // the repository, which stands for /path/to/the/clone
	Env   []string // of each new terminal
	terms []*running
	shell string // the folder with what the terminal's commands have left, or "" for a new one
}

// longest is how long a command may take, and how long what it shows may take to come: far
// longer than either does on a busy machine.
const longest = 2 * time.Minute

// Run runs blocks in their order, and reports each that does not do what the document says.
func (s *Session) Run(t *testing.T, name string, blocks []Block) {
	t.Helper()
	defer s.end()
	for _, b := range blocks {
		if b.NotRun != "" || b.RunBy != "" {
			continue
		}
		switch {
		case b.File != "":
			path := filepath.Join(s.Dir, b.File)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(s.text(b.Text)), 0o600)); err != nil {
				t.Fatal(err)
			}
		case len(b.Shown) > 0:
			if err := s.shows(b.Shown); err != nil {
				t.Errorf("%s:%d: no terminal shows it: %v", name, b.Line, err)
			}
		}
		for i, step := range b.Steps {
			keeps := i == len(b.Steps)-1 && (b.KeepsRunning || keepsRunning.MatchString(step.Command))
			if err := s.step(t, step, b.InClone, keeps); err != nil {
				t.Fatalf("%s:%d: $ %s\n%v", name, step.Line, step.Command, err)
			}
		}
	}
}

// keepsRunning are the commands that run until they are stopped.
var keepsRunning = regexp.MustCompile(`^(\w+=\S+ )*forbear (serve|listen|top)\b[^|]*$`)

func (s *Session) text(text string) string {
	return strings.ReplaceAll(text, "/path/to/the/clone", s.Clone)
}

// step runs one command. What a command exports is there for the next one of its terminal.
func (s *Session) step(t *testing.T, step Step, inClone, keeps bool) error {
	t.Helper()
	if s.shell == "" {
		s.shell = t.TempDir()
	}
	begin := s.Dir
	if inClone {
		begin = s.Clone
	}
	state := s.shell
	if keeps {
		s.shell = "" // the next block is another terminal
	}
	command := s.text(step.Command)
	script := fmt.Sprintf("cd %q\n[ ! -e %[2]s/env ] || { . %[2]s/env; cd \"$(cat %[2]s/cwd)\"; }\n%[3]s\nstatus=$?\nexport -p >%[2]s/env; pwd >%[2]s/cwd\nexit $status\n", begin, state, command)
	if inClone { // as another terminal, in a workspace, which takes no -mod=mod
		script = fmt.Sprintf("unset GOFLAGS\ncd %q\n%s\n", begin, command)
	}
	for end := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		err := s.try(script, step.Output, keeps)
		if err == nil || keeps || !looks.MatchString(command) || time.Now().After(end) {
			return err
		}
	}
}

// looks are the commands that only look at something, which may take its time to be so.
var looks = regexp.MustCompile(`^(forbear (messages|dlq|endpoints|keys|alerts) (list|show|stats)\b[^;&|]*|curl -si? \S+)$`)

// try runs a script once.
func (s *Session) try(script string, want []string, keeps bool) error {
	p, err := start(script, s.Env)
	if err != nil {
		return err
	}
	if keeps {
		s.terms = append(s.terms, p)
		return p.wait(want)
	}
	defer p.stop() // what it has left in the background
	select {
	case <-p.done:
	case <-time.After(longest):
		return fmt.Errorf("it did not end within %v; it printed:\n%s", longest, p.output())
	}
	if want != nil {
		return Match(want, p.output())
	}
	if p.err != nil {
		return fmt.Errorf("%w\n%s", p.err, p.output())
	}
	return nil
}

// shows waits until one of the terminals has shown lines.
func (s *Session) shows(want []string) (err error) {
	for end := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		var all []error
		for _, p := range s.terms {
			end, err := Contains(want, p.unseen())
			if err == nil {
				p.seen += end
				return nil
			}
			all = append(all, err)
		}
		if time.Now().After(end) || len(s.terms) == 0 {
			return errors.Join(all...)
		}
	}
}

func (s *Session) end() {
	for _, p := range s.terms {
		p.stop()
	}
}

// running is a command that has been started.
type running struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // once it is done
	seen int   // lines that the document has shown
	mu   sync.Mutex
	text bytes.Buffer
}

// unseen is the output behind what the document has shown.
func (p *running) unseen() string {
	lines := strings.Split(p.output(), "\n")
	return strings.Join(lines[min(p.seen, len(lines)):], "\n")
}

func (p *running) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *running) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// start starts a script in a group of processes of its own, so that all of it can be stopped.
func start(script string, env []string) (*running, error) {
	p := &running{cmd: exec.CommandContext(context.Background(), "bash", "-c", script), done: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// wait waits until a command that keeps running has shown what it is to show, or anything.
func (p *running) wait(want []string) (err error) {
	for end := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		if text := p.output(); want == nil && strings.Contains(text, "\n") {
			return nil
		} else if want != nil {
			if p.seen, err = Contains(want, text); err == nil {
				return nil
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("it has ended (%v); it printed:\n%s", p.err, p.output())
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("it does not show it within %v: %w", longest, err)
		}
	}
}

// stop ends the command, and what it has started.
func (p *running) stop() {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-p.done
	}
}
