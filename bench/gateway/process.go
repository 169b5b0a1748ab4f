package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errEnded = errors.New("exit status 0")

// process is one that this program started and ends.
type process struct {
	cmd  *exec.Cmd
	done chan error
	out  *bytes.Buffer // read after done only
}

// spawn starts a program with its state in dir, out of the user's folders.
func spawn(dir string, env []string, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), done: make(chan error, 1), out: &bytes.Buffer{}}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, &capped{p.out}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// listening waits until the address takes connections.
func (p *process) listening(addr string, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("ended at once: %w: %s", cmp.Or(err, errEnded), p.out)
		default:
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
	}
	return fmt.Errorf("nothing listens on %s after %v", addr, limit)
}

// stop asks the process to end, and after a while makes it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// capped keeps the beginning of what is written.
type capped struct{ b *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := 4096 - c.b.Len(); room > 0 {
		c.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// ticks is the unit of times in /proc, which Linux fixes at 100 a second for
// every program.
const ticks = 100

// cpuTime returns the CPU time of a process and its living descendants: user
// and system.
func cpuTime(pid int) time.Duration {
	parents, used := map[int]int{}, map[int]int64{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything; what follows it is
		// numbers: state, parent, ...
		text := string(data)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(f) < 13 {
			continue
		}
		parents[id], _ = strconv.Atoi(f[1])
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		used[id] = user + system
	}
	var sum int64
	for id, n := range used {
		for at := id; at > 1; at = parents[at] {
			if at == pid {
				sum += n
				break
			}
		}
	}
	return time.Duration(sum) * time.Second / ticks
}
