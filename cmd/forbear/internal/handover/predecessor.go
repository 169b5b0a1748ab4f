package handover

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// variable holds what a process is given by the one that it replaces.
const variable = "FORBEAR_HANDOVER"

// note is what the variable holds. The sockets begin with descriptor 3. Behind them are the
// pipe to be ready on, and, where First says so, the one that leads to the first process.
type note struct {
	Sockets []string `json:"sockets"`
	First   bool     `json:"first"`
}

// Predecessor is the process that this one replaces. Nil is none; its methods do
// nothing.
type Predecessor struct {
	Sockets []string
	ready   *os.File
	// first leads to the first process of all, which stays, adopts and awaits its
	// successors, and wants to know the number of the one that serves. Nil: none does.
	first *os.File
}

// Receive returns the predecessor of this process, or nil if there is none. It unsets the variable, so that no other process takes it for its own.
func Receive() (*Predecessor, error) {
	text := os.Getenv(variable)
	_ = os.Unsetenv(variable)
	if text == "" {
		return nil, nil
	}
	var n note
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	p := &Predecessor{Sockets: n.Sockets}
	pipes := []**os.File{&p.ready}
	if n.First {
		pipes = append(pipes, &p.first)
	}
	for i, pipe := range pipes {
		f := os.NewFile(uintptr(firstPassed+len(n.Sockets)+i), "pipe")
		if info, err := f.Stat(); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			return nil, fmt.Errorf("%s names a descriptor that is not a pipe", variable)
		}
		closeOnExec(f)
		*pipe = f
	}
	return p, nil
}

// Names returns the names of the sockets that were passed.
func (p *Predecessor) Names() []string {
	if p == nil {
		return nil
	}
	return p.Sockets
}

// Supervised reports whether the first process awaits this one and its successors.
func (p *Predecessor) Supervised() bool { return p != nil && p.first != nil }

// Ready tells the predecessor that this process serves.
func (p *Predecessor) Ready() error { return p.say("ready") }

// Failed says to the predecessor why this process does not serve.
func (p *Predecessor) Failed(why string) error { return p.say(strings.ReplaceAll(why, "\n", "; ")) }

// say writes the one line that the predecessor waits for.
func (p *Predecessor) say(line string) error {
	if p == nil || p.ready == nil {
		return nil
	}
	_, err := io.WriteString(p.ready, line+"\n")
	err = errors.Join(err, p.ready.Close())
	p.ready = nil
	return err
}

// maxLine bounds what is read of a successor that fails.
const maxLine = 4 << 10

// await returns nil when the successor behind r is ready, and otherwise why not.
func await(r io.Reader) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case line == "ready" && err == nil:
		return nil
	case line != "":
		return errors.New(line)
	default:
		return errors.New("it ended before it was ready: see its log")
	}
}

// binary returns the path of the program as it is now: the name that this process was
// started by may lead to another file since.
func binary() (string, error) {
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		return path, nil
	}
	return os.Executable()
}
