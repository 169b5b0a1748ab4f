//go:build unix

package probe

import (
	"os/exec"
	"syscall"
)

// together makes a program end with all that it starts.
func together(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endAll ends a program and all that it has started.
func endAll(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// ask tells a program to end.
func ask(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
