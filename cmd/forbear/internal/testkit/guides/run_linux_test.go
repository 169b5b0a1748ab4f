//forbear:plain the program runs as its users have it, and other tests look for its races
package guides

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
	"github.com/forbear-go/forbear/internal/testkit/transcript"
)

// programName is the name under which this test binary is the program.
const programName = "forbear"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		ctx, stop := cli.WithSignals(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := commands.Program().Run(ctx, &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:])
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// program makes the program: a link to this test binary.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), programName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// root is the repository.
const root = "../../../../../"

// guideOf is the variable that names the guide in the process that runs it.
const guideOf = "FORBEAR_TEST_GUIDE"

// TestGuides runs the commands of the guides as they are printed, on the ports that are
// printed: each guide has a network of its own. Where the system allows none, they run one
// after the other on this machine's.
func TestGuides(t *testing.T) {
	if os.Getenv(guideOf) != "" {
		t.Skip("this process runs one of them")
	}
	program := program(t)
	guides, err := filepath.Glob(root + "docs/guides/*.md")
	if err != nil || len(guides) < 20 {
		t.Fatalf("%d guides: %v", len(guides), err)
	}
	var alone sync.Mutex
	for _, guide := range append(guides, root+"README.md") {
		t.Run(strings.TrimSuffix(filepath.Base(guide), ".md"), func(t *testing.T) {
			t.Parallel()
			path, err := filepath.Abs(guide)
			if err != nil {
				t.Fatal(err)
			}
			run := func(own bool) ([]byte, error) {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGuide$", "-test.count=1")
				cmd.Env = append(os.Environ(), guideOf+"="+path, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
				cmd.WaitDelay = 10 * time.Second
				if own {
					cmd.SysProcAttr = ownNetwork()
				}
				return cmd.CombinedOutput()
			}
			out, err := run(true)
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
				t.Logf("no network of its own: %v", err)
				alone.Lock()
				defer alone.Unlock()
				out, err = run(false)
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// ownNetwork gives a process a network without anything but loopback.
func ownNetwork() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID} // what is left ends with it
	if os.Getuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// TestGuide is one of TestGuides, in a process of its own.
func TestGuide(t *testing.T) {
	guide := os.Getenv(guideOf)
	if guide == "" {
		t.Skip("TestGuides starts it")
	}
	if err := loopbackUp(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := transcript.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(guide), err)
	}
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "FORBEAR_") || strings.HasPrefix(e, "GO") && !strings.HasPrefix(e, "GOCACHE=") && !strings.HasPrefix(e, "GOMODCACHE=") && !strings.HasPrefix(e, "GOPATH=") && !strings.HasPrefix(e, "GORACE=")
	})
	s := transcript.Session{Dir: t.TempDir(), Clone: clone, Env: append(env, "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOTOOLCHAIN=local", "LC_ALL=C.UTF-8")}
	s.Run(t, filepath.Base(guide), blocks)
}

// loopbackUp switches loopback on, which a new network has off.
func loopbackUp() error {
	if lo, err := net.InterfaceByName("lo"); err != nil || lo.Flags&net.FlagUp != 0 {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	request := struct { // ifreq of netdevice(7)
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_LOOPBACK | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); no != 0 {
		return fmt.Errorf("switch loopback on: %w", no)
	}
	return nil
}
