package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// archNames are what rpm calls the architectures.
var archNames = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// packages returns the paths of the deb and the rpm of a version.
func packages(t *testing.T, version string) (deb, rpm string) {
	t.Helper()
	dir := built(t, version)
	return filepath.Join(dir, "forbear_"+version+"_"+runtime.GOARCH+".deb"),
		filepath.Join(dir, "forbear-"+version+"-1."+archNames[runtime.GOARCH]+".rpm")
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// apart are the files that only one of the two has, or has elsewhere.
var apart = []string{
	"/usr/share/doc/forbear/copyright", "/usr/share/lintian/overrides/forbear", "/usr/share/licenses/forbear/LICENSE",
	"/usr/share/zsh/vendor-completions/_forbear", "/usr/share/zsh/site-functions/_forbear",
}

// contents returns path, mode and hash of each file of a package, as rpm installs it or
// dpkg unpacks it.
func contents(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		name := strings.TrimPrefix(path, root)
		if !slices.Contains(apart, name) && !strings.HasPrefix(name, "/var/lib/rpm/") {
			list = append(list, fmt.Sprintf("%s %o %s", name, info.Mode().Perm(), strings.Fields(output(t, "sha256sum", path))[0]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The rpm installs what the deb does, and what it installs runs.
func TestRPM(t *testing.T) {
	program(t, "rpm")
	deb, rpm := packages(t, "1.1.0")
	one, other := t.TempDir(), t.TempDir()
	output(t, "dpkg-deb", "-x", deb, one)
	// Without scripts, which are for a running system, and without what rpm itself would need.
	output(t, "rpm", "--root", other, "--dbpath", "/var/lib/rpm", "-i", "--nodeps", "--noscripts", "--ignorearch", rpm)
	if got, want := contents(t, other), contents(t, one); !slices.Equal(got, want) || len(want) < 25 {
		t.Errorf("the rpm has\n%s\nand the deb\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := output(t, filepath.Join(other, "usr/bin/forbear"), "version"); !strings.HasPrefix(got, "forbear v1.1.0 ") {
		t.Errorf("installed: %s", got)
	}
	if got := output(t, "rpm", "-qpc", rpm); got != "/etc/forbear/forbear.env\n/etc/forbear/policy.yaml\n" {
		t.Errorf("settings that an upgrade keeps: %s", got)
	}
	scripts := output(t, "rpm", "-qp", "--scripts", rpm)
	for _, want := range []string{"postinstall", "try-restart forbear.service", "preuninstall", "disable --now forbear.socket"} {
		if !strings.Contains(scripts, want) {
			t.Errorf("the scripts lack %q:\n%s", want, scripts)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, "rpm", "-qp", "--queryformat", "%{BUILDHOST}", rpm); got != "localhost" {
		t.Errorf("the rpm names the machine that built it, %s: %s", host, got)
	}
}

// Two builds of the packages are the same bytes.
func TestPackagesReproducible(t *testing.T) {
	deb, rpm := packages(t, "1.1.0")
	dir := filepath.Dir(deb)
	before := output(t, "sha256sum", deb, rpm)
	cmd := exec.Command("go", "run", "./pack", "-version", "1.1.0", "-only", "linux_"+runtime.GOARCH, "-dist", dir)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := output(t, "sha256sum", deb, rpm); after != before {
		t.Errorf("two builds differ:\n%s%s", before, after)
	}
}
