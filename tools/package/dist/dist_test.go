package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

const root = "../../.."

// limit holds what docs/size.md says. A template anywhere in the program costs ten
// megabytes; a few of them are room to grow.
const limit = 42_000_000

// copied copies the source into a folder that no build can have known, without its
// repository.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		to := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// made runs dist for one platform and returns the hash of each file that it wrote.
func made(t *testing.T, source, platform string) (string, map[string]string) {
	t.Helper()
	platforms, err := build.Chosen(platform)
	if err != nil {
		t.Fatal(err)
	}
	d := dist{build.Job{
		Root: source, Dist: filepath.Join(t.TempDir(), "dist"), Tools: filepath.Join(root, "bin/package"),
		Version: "1.2.3", Platforms: platforms,
	}}
	if err := d.run(); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	err = filepath.WalkDir(d.Dist, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(d.Dist, path)
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d.Dist, sums
}

// Two trees in different places, at different times, make the same bytes: program,
// archive, list of parts, sums. The zip is Windows's; it differs in its writer alone.
func TestReproducible(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	for _, platform := range []string{"linux_" + runtime.GOARCH, "windows_amd64"} {
		one, first := made(t, copied(t), platform)
		time.Sleep(1100 * time.Millisecond) // a tar's times are whole seconds
		_, second := made(t, copied(t), platform)
		if len(first) < 20 {
			t.Errorf("%s: only %d files: %v", platform, len(first), first)
		}
		for name, sum := range first {
			if second[name] != sum {
				t.Errorf("%s: %s differs between two folders", platform, name)
			}
		}
		check := exec.Command("sha256sum", "-c", "SHA256SUMS")
		check.Dir = one
		if out, err := check.CombinedOutput(); err != nil || bytes.Count(out, []byte(": OK\n")) != 2 {
			t.Errorf("sha256sum: %v\n%s", err, out)
		}
		if platform == "windows_amd64" {
			continue // cannot run here
		}
		program := filepath.Join(one, platform, "forbear")
		if out, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(out), "forbear v1.2.3 ") {
			t.Errorf("forbear version: %v, %q", err, out)
		}
		b, err := os.ReadFile(program)
		if err != nil || bytes.Contains(b, []byte(filepath.Dir(one))) {
			t.Errorf("the program names the folder that it was made in, or cannot be read: %v", err)
		}
		if platform == "linux_amd64" && len(b) > limit {
			t.Errorf("forbear has %d bytes, more than %d: see docs/size.md for what keeps it small", len(b), limit)
		}
		parts, err := os.ReadFile(filepath.Join(one, "forbear_1.2.3_"+platform+".cdx.json"))
		for _, want := range []string{`"CycloneDX"`, "pkg:golang/modernc.org/sqlite@v", "pkg:golang/github.com/jackc/pgx/v5@v", "pkg:golang/std@"} {
			if err != nil || !strings.Contains(string(parts), want) {
				t.Errorf("the list of parts lacks %s: %v", want, err)
			}
		}
	}
}

// The archive unpacks to a program that runs, with what packages it.
func TestArchive(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	out, _ := made(t, root, platform)
	dir := t.TempDir()
	if b, err := exec.Command("tar", "-xzf", filepath.Join(out, "forbear_1.2.3_"+platform+".tar.gz"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	top := filepath.Join(dir, "forbear_1.2.3_"+platform)
	for _, name := range []string{"LICENSE", "CHANGELOG.md", "man/forbear.1", "man/forbear-serve.1", "completions/forbear.bash", "completions/_forbear"} {
		if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := exec.Command(filepath.Join(top, "forbear"), "explain", "--status", "503").Output(); err != nil || !strings.HasPrefix(string(b), "retry") {
		t.Errorf("explain: %v, %q", err, b)
	}
}

// Whoever names no platform that there is learns which there are.
func TestUnknownPlatform(t *testing.T) {
	if _, err := build.Chosen("plan9_mips"); err == nil || !strings.Contains(err.Error(), "linux_arm64") {
		t.Errorf("got %v", err)
	}
}
