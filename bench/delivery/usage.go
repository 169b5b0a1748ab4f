package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// jiffy is the unit of processor times in /proc, on Linux for every program.
const jiffy = 10 * time.Millisecond

// stat are the fields of /proc/PID/stat that are used here.
type stat struct {
	parent      int
	own, ofDead time.Duration // its own time, and that of its children that have ended
}

func readStat(pid string) (s stat, ok bool) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return s, false
	}
	// The name, in parentheses, may hold anything; what follows it is numbers.
	text := string(data)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 15 {
		return s, false
	}
	number := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(n) * jiffy
	}
	s.parent, _ = strconv.Atoi(f[1])
	s.own, s.ofDead = number(11)+number(12), number(13)+number(14)
	return s, true
}

// processTime is the processor time of a process, to the nanosecond.
func processTime(pid int) time.Duration {
	var t syscall.Timespec
	clock := ^pid<<3 | 2 // as clock_getcpuclockid(3) makes it
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

// treeTime is the processor time of a process and of its children, dead ones
// included.
func treeTime(pid int) time.Duration {
	s, _ := readStat(strconv.Itoa(pid))
	sum := s.own + s.ofDead
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		if s, ok := readStat(filepath.Base(path)); ok && s.parent == pid {
			sum += s.own
		}
	}
	return sum
}

// restrain gives a process no more than a part of one processor, until ctx ends: it
// is stopped whenever it has used more. So it fares on a machine of its own that is
// too small, and not the shared one is what limits it.
func restrain(ctx context.Context, process *os.Process, part float64) {
	const credit = 5 * time.Millisecond // what it may use at once after a rest
	stopped := false
	defer func() { _ = process.Signal(syscall.SIGCONT) }()
	began, used := time.Now(), processTime(process.Pid)
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		allowed := time.Duration(part * float64(time.Since(began)))
		left := allowed - (processTime(process.Pid) - used)
		switch {
		case left < 0 && !stopped:
			_ = process.Signal(syscall.SIGSTOP)
			stopped = true
		case left > 0 && stopped:
			_ = process.Signal(syscall.SIGCONT)
			stopped = false
		}
		if left > credit { // what it did not use is lost
			used -= left - credit
		}
	}
}
