package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// folders are where versions are built, once for all tests; TestMain removes them.
var folders = map[string]string{}

// built makes the packages of a version, for this machine, and returns the folder.
func built(t *testing.T, version string) string {
	t.Helper()
	if dir, ok := folders[version]; ok {
		return dir
	}
	dir, err := os.MkdirTemp("", "forbear-dist-")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"./dist", "./pack"} {
		cmd := exec.Command("go", "run", command, "-version", version, "-only", "linux_"+runtime.GOARCH, "-dist", dir)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			_ = os.RemoveAll(dir) // the next test is not to take a half of it
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	folders[version] = dir
	return dir
}

// deb makes a version's deb, and puts it into the machine's root.
func (m *machine) deb(version string) string {
	m.t.Helper()
	name := "forbear_" + version + "_" + runtime.GOARCH + ".deb"
	b, err := os.ReadFile(filepath.Join(built(m.t, version), name))
	if err != nil {
		m.t.Fatal(err)
	}
	m.write("/root/"+name, string(b))
	return "/root/" + name
}

const policy = `service: gateway
dependencies:
  up:
    url: http://127.0.0.1:9001
    owner: gateway
gateway:
  routes:
    - prefix: /up
      dependency: up
`

// A deb is installed, configured, upgraded under traffic, removed and purged, on a
// Debian with its own systemd.
func TestDeb(t *testing.T) {
	m := boot(t)
	first, second := m.deb("1.0.0"), m.deb("1.1.0")
	m.install(first)

	m.write("/etc/forbear/policy.yaml", policy)
	m.write("/etc/forbear/forbear.env", "FORBEAR_ARGS=--allow-target 127.0.0.0/8 --drain-delay 1s --reload-every 0\n")
	m.must("systemctl", "restart", "forbear.service")
	m.must("curl", "-sf", "-X", "PUT", "http://127.0.0.1:8080/v1/endpoints/there", "-d", `{"url":"http://127.0.0.1:9002/hook"}`)
	ask := neighbourOf(m)
	m.await("calls and deliveries", func() bool { n := ask("status"); return n.Calls > 20 && n.Delivered > 20 })

	m.reload()
	m.upgrade(second, ask)
	m.handOver()
	n := ask("end")
	t.Logf("%d calls, %d messages delivered", n.Calls, n.Delivered)
	if n.Refused != 0 || n.Lost != 0 || len(n.Failed)+len(n.Wrong) != 0 || n.Calls < 50 || n.Delivered < 300 {
		t.Errorf("the neighbour saw %+v\n%s", n, m.must("journalctl", "--no-pager", "-u", "forbear.service"))
	}

	m.watchdog()
	m.addresses()
	m.remove(second)
}

// install installs the first version and looks at what is there without any setting.
func (m *machine) install(deb string) {
	t := m.t
	m.must("dpkg", "-i", deb)
	m.await("the service", func() bool { return m.get("/health/ready") == "{\"status\":\"ok\"}\n 200" })
	for _, unit := range []string{"forbear.service", "forbear.socket"} {
		if got := m.must("systemctl", "is-enabled", unit); got != "enabled" {
			t.Errorf("%s is %s", unit, got)
		}
	}
	if got := m.must("forbear", "version"); !strings.HasPrefix(got, "forbear v1.0.0 ") {
		t.Errorf("installed: %s", got)
	}
	if got := m.must("stat", "-c", "%a %U", "/etc/forbear/forbear.env", "/etc/forbear/policy.yaml"); got != "640 root\n644 root" {
		t.Errorf("modes of the settings: %s", got)
	}
	for _, path := range []string{
		"/usr/share/man/man1/forbear-serve.1.gz", "/usr/share/bash-completion/completions/forbear",
		"/usr/share/zsh/vendor-completions/_forbear", "/usr/share/fish/vendor_completions.d/forbear.fish",
	} {
		if !m.is(path) {
			t.Errorf("no %s", path)
		}
	}
	// The user exists while the service runs, and has no rights.
	uid := m.must("stat", "-c", "%u", "/proc/"+m.show("MainPID"))
	if n, err := strconv.Atoi(uid); err != nil || n < 61184 || n > 65519 {
		t.Errorf("the service runs as %s, which is no dynamic user", uid)
	}
	if out := m.must("forbear", "check", "/etc/forbear/policy.yaml"); !strings.Contains(out, "0 errors") {
		t.Errorf("the policy of the package: %s", out)
	}
	score := regexp.MustCompile(`exposure level for forbear.service: ([0-9.]+)`).FindStringSubmatch(m.must("systemd-analyze", "security", "--no-pager", "forbear.service"))
	if score == nil {
		t.Fatal("systemd-analyze gives no score")
	}
	t.Logf("systemd-analyze security: %s", score[1])
	if n, err := strconv.ParseFloat(score[1], 64); err != nil || n > 1.5 {
		t.Errorf("the service is exposed: %s of 10", score[1])
	}
}

// reload changes the policy, which counts from the reload on.
func (m *machine) reload() {
	pid := m.show("MainPID")
	m.write("/etc/forbear/policy.yaml", policy+"    - prefix: /too\n      dependency: up\n")
	if got := m.get("/too/a"); !strings.HasSuffix(got, " 404") {
		m.t.Errorf("before the reload: %s", got)
	}
	m.must("systemctl", "reload", "forbear.service")
	m.await("the reload", func() bool { return m.get("/too/a") == "/a 200" })
	if m.show("MainPID") != pid {
		m.t.Error("a reload started another process")
	}
}

// upgrade installs another version while calls come and messages wait.
func (m *machine) upgrade(deb string, ask func(string) counts) {
	pid := m.show("MainPID")
	waiting := ask("burst")
	if waiting.Lost < 20 {
		m.t.Errorf("only %d messages wait for their delivery", waiting.Lost)
	}
	m.must("dpkg", "-i", deb)
	m.await("the new version", func() bool { return m.show("ActiveState") == "active" && m.show("MainPID") != pid })
	if got := m.must("readlink", "/proc/"+m.show("MainPID")+"/exe"); !strings.HasSuffix(got, "/usr/bin/forbear") { // not "(deleted)"
		m.t.Errorf("the service is %s", got)
	}
	if got := m.must("forbear", "version"); !strings.HasPrefix(got, "forbear v1.1.0 ") {
		m.t.Errorf("upgraded: %s", got)
	}
	if got := m.get("/too/b"); got != "/b 200" {
		m.t.Errorf("the policy was not kept: %s", got)
	}
	before := ask("status").Calls
	m.await("calls after the upgrade", func() bool { return ask("status").Calls > before+20 })
}

// handOver has the process start its successor.
func (m *machine) handOver() {
	pid := m.show("MainPID")
	m.must("systemctl", "kill", "-s", "USR2", "--kill-who=main", "forbear.service")
	m.await("the handover", func() bool { return m.show("MainPID") != pid })
	m.await("the end of the first process", func() bool { _, err := m.in("test", "-e", "/proc/"+pid); return err != nil })
	if got := m.show("ActiveState"); got != "active" {
		m.t.Errorf("after the handover the service is %s", got)
	}
}

// watchdog stops the process without ending it: systemd notices, and starts another.
func (m *machine) watchdog() {
	m.write("/etc/systemd/system/forbear.service.d/test.conf", "[Service]\nWatchdogSec=2\n")
	m.must("systemctl", "daemon-reload")
	m.must("systemctl", "restart", "forbear.service")
	pid := m.show("MainPID")
	m.must("sleep", "5") // more than twice the time: a process that works is left alone
	if m.show("MainPID") != pid {
		m.t.Fatal("the watchdog ended a process that works")
	}
	m.must("sh", "-c", "kill -STOP "+pid)
	m.await("the watchdog", func() bool { return m.show("NRestarts") == "1" && m.show("ActiveState") == "active" })
	if got := m.get("/health/live"); !strings.HasSuffix(got, " 200") {
		m.t.Errorf("after the watchdog: %s", got)
	}
	if got := m.must("journalctl", "--no-pager", "-u", "forbear.service"); !strings.Contains(got, "Watchdog timeout") {
		m.t.Errorf("the journal says nothing of the watchdog:\n%s", got)
	}
}

// addresses gives the service other sockets, as the guide says, and takes them back.
func (m *machine) addresses() {
	const drop = "/etc/systemd/system/forbear.socket.d/test.conf"
	m.write(drop, "[Socket]\nListenStream=\nListenStream=/run/forbear.sock\n")
	m.must("systemctl", "daemon-reload")
	m.must("systemctl", "restart", "forbear.socket")
	if got := m.must("curl", "-s", "-m", "20", "--unix-socket", "/run/forbear.sock", "http://localhost/health/ready"); got != `{"status":"ok"}` {
		m.t.Errorf("by a unix socket: %s", got)
	}
	if got := m.get("/health/ready"); got != "000" {
		m.t.Errorf("at the address before: %s", got)
	}
	if err := os.Remove(filepath.Join(m.root, drop)); err != nil {
		m.t.Fatal(err)
	}
	m.must("systemctl", "daemon-reload")
	m.must("systemctl", "restart", "forbear.socket")
}

// remove removes the package, which keeps settings and state, installs it again, and
// purges it, which keeps nothing.
func (m *machine) remove(deb string) {
	t := m.t
	const db = "/var/lib/private/forbear/forbear.db"
	m.must("dpkg", "-r", "forbear")
	if got := m.get("/health/live"); got != "000" {
		t.Errorf("removed, and still there: %s", got)
	}
	if !m.is(db) || !m.is("/etc/forbear/policy.yaml") || m.is("/usr/bin/forbear") {
		t.Error("a removal must keep state and settings, and nothing else")
	}
	m.must("dpkg", "-i", deb)
	m.await("the service, again", func() bool { return strings.HasSuffix(m.get("/v1/messages/m0-0"), " 200") })
	m.must("dpkg", "-P", "forbear")
	for _, path := range []string{db, "/var/lib/private/forbear", "/var/lib/forbear", "/etc/forbear", "/usr/lib/systemd/system/forbear.service"} {
		if m.is(path) {
			t.Errorf("purged, and %s is there", path)
		}
	}
	m.must("dpkg", "-i", deb)
	m.await("the service, anew", func() bool { return strings.HasSuffix(m.get("/health/ready"), " 200") })
	if got := m.get("/v1/messages/m0-0"); !strings.HasSuffix(got, " 404") {
		t.Errorf("purged, and it knows a message: %s", got)
	}
}
