package handover

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
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
		return errors.New("it ended before it was ready: its own log says why")
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

// firstPassed is the descriptor of the first socket that is passed, as
// sd_listen_fds(3) has it.
const firstPassed = 3

// Passed returns the sockets that the environment has passed to this process: those that
// names lists, which another forbear has passed on by [Sockets.Files], or those of systemd
// (LISTEN_FDS, see sd_listen_fds(3)). It unsets the variables of systemd, so that no other
// process takes them for its own. It is called once, before anything else is opened.
func Passed(names []string) (*Sockets, error) {
	var files []*os.File
	prefix := ""
	for i, name := range names {
		files = append(files, os.NewFile(uintptr(firstPassed+i), name))
	}
	if len(names) == 0 {
		files, prefix = activation.Files(true), systemdPrefix
	}
	s := &Sockets{}
	for _, f := range files {
		p, err := adopt(f, prefix+f.Name())
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.passed = append(s.passed, p)
	}
	return s, nil
}

// adopt takes over a socket that was passed.
func adopt(f *os.File, name string) (*socket, error) {
	if !isListening(f.Fd()) {
		return nil, fmt.Errorf("socket %s does not listen: want a stream socket, with Accept=no", name)
	}
	l, err := net.FileListener(f) // a copy, which no other process inherits
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("socket %s: %w", name, err)
	}
	p := &socket{name: name, Listener: l}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		// systemd removes the files of its own sockets.
		if path := l.Addr().String(); !strings.HasPrefix(name, systemdPrefix) && path != "" && path[0] != '@' {
			p.file, _ = os.Lstat(path)
		}
	}
	return p, nil
}
