package machine

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a systemd in namespaces, over a root file system of its own.
type machine struct {
	t    *testing.T
	root string
	pid  string // of its systemd
}

// boot installs Debian into a folder, from the machine's own sources, and starts it. At
// the end of the test both are gone.
func boot(t *testing.T) *machine {
	t.Helper()
	asRoot(t)
	program(t, "mmdebstrap")
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("mmdebstrap", append([]string{
		"--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,curl", "--dpkgopt=force-unsafe-io", codename(t), root,
	}, sources(t)...)...).CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	m := &machine{t: t, root: root}
	group := fmt.Sprintf("forbear-test-%d", os.Getpid())
	var log bytes.Buffer
	cmd := exec.Command("unshare", "--mount", "sh", "boot.sh", root, group)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unshare --kill-child ends the systemd, and all below it
		_ = cmd.Wait()
		leave(group)
	})
	await(t, "the start of systemd", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		m.pid = strings.TrimSpace(string(children))
		if m.pid == "" {
			return false
		}
		state, _ := m.in("systemctl", "is-system-running")
		return state == "running" || state == "degraded"
	}, log.String)
	return m
}

// program is for tests that run it.
func program(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		unable(t, "no "+name+": sudo apt-get install "+name)
	}
}

// asRoot is for tests that make namespaces.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		unable(t, "not root: sudo make package-check")
	}
}

// unable fails in CI, and skips elsewhere.
func unable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// codename is that of the machine's Debian.
func codename(t *testing.T) string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	t.Fatal("no VERSION_CODENAME in /etc/os-release")
	return ""
}

// sources are the files in which the machine says where its packages come from.
func sources(t *testing.T) (list []string) {
	t.Helper()
	for _, path := range []string{"/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"} {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		t.Fatal("neither /etc/apt/sources.list.d/debian.sources nor /etc/apt/sources.list says where Debian's packages are")
	}
	return list
}

// leave removes the groups of processes that have ended.
func leave(group string) {
	for _, base := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(base, group), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			for range 50 {
				if err := syscall.Rmdir(dir); err != syscall.EBUSY {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// command is a command on the machine.
func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{
		"--target", m.pid, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd=/",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
	}, args...)...)
}

// in runs a command on the machine, and returns what it printed.
func (m *machine) in(args ...string) (string, error) {
	out, err := m.command(args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must runs a command that has to succeed.
func (m *machine) must(args ...string) string {
	m.t.Helper()
	out, err := m.in(args...)
	if err != nil {
		journal, _ := m.in("journalctl", "--no-pager", "-u", "forbear.service", "-u", "forbear.socket", "-n", "40")
		m.t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, journal)
	}
	return out
}

// show returns a property of the service.
func (m *machine) show(property string) string {
	m.t.Helper()
	return m.must("systemctl", "show", "--value", "--property="+property, "forbear.service")
}

// get asks the gateway on the machine, and returns the status and the body.
func (m *machine) get(path string) string {
	out, _ := m.in("curl", "-s", "-m", "20", "-w", " %{http_code}", "http://127.0.0.1:8080"+path)
	return out
}

// await waits for a state of the machine.
func (m *machine) await(what string, is func() bool) {
	m.t.Helper()
	await(m.t, what, is, func() string {
		journal, _ := m.in("journalctl", "--no-pager", "-u", "forbear.service", "-n", "40")
		return journal
	})
}

// await waits until what is true, or fails with a log. A minute is for machines that do
// much else.
func await(t *testing.T, what string, is func() bool, log func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not within a minute: %s\n%s", what, log())
}

// write writes a file of the machine.
func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// is reports whether a file of the machine is there.
func (m *machine) is(path string) bool {
	_, err := os.Lstat(filepath.Join(m.root, path))
	return err == nil
}
