package machine

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// imageOf makes the image's layout of what dist wrote into a folder, and returns its
// index, and the image for this machine.
func imageOf(t *testing.T, dist string) (v1.ImageIndex, v1.Image) {
	t.Helper()
	cmd := exec.Command("go", "run", "./image", "-version", "1.1.0", "-dist", dist, "-only", "linux_"+runtime.GOARCH)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	top, err := layout.ImageIndexFromPath(filepath.Join(dist, "image"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %+v", err, manifest)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %+v", err, manifest)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, image
}

// unpack writes the files of an image into a folder, with their owners.
func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		err = os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case h.Typeflag == tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		default:
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err == nil {
			err = errors.Join(os.Chown(path, h.Uid, h.Gid), syscall.Chmod(path, uint32(h.Mode)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"proc", "dev"} { // an engine makes these
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// The image is well-formed, the same at each build, and runs as an engine runs it: not
// as root, over a root that cannot be written. It serves, delivers and ends on SIGTERM.
func TestImage(t *testing.T) {
	asRoot(t)
	program(t, "curl")
	dist := built(t, "1.1.0")
	index, image := imageOf(t, dist)
	if err := errors.Join(validate.Index(index), validate.Image(image)); err != nil {
		t.Errorf("the image is not well-formed: %v", err)
	}
	first, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	again, image := imageOf(t, dist)
	if second, err := again.Digest(); err != nil || second != first {
		t.Errorf("two builds, two images: %s and %s, %v", first, second, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != "1.1.0" {
		t.Errorf("config: %+v", config.Config)
	}
	root, volume := filepath.Join(t.TempDir(), "root"), t.TempDir()
	unpack(t, image, root)
	if n := bytes.Count(slurp(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("%d certificate authorities", n)
	}
	if err := os.Chown(volume, 65532, 65532); err != nil { // an engine gives a new volume the folder's owner
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/forbear/policy.yaml"), []byte(policy), 0o644); err != nil { // as one mounted over it
		t.Fatal(err)
	}

	c := start(t, root, volume, config.Config)
	health := config.Config.Healthcheck.Test[1:]
	c.await("the health check", func() bool {
		out, err := c.also(health...).CombinedOutput()
		return err == nil && string(out) == "200 {\"status\":\"ok\"}\n"
	})
	c.curl("-X", "PUT", "http://127.0.0.1:8082/v1/endpoints/there", "-d", `{"url":"http://127.0.0.1:9002/hook"}`)
	ask := neighbourOf(&machine{t: t, pid: c.pid}, "FORBEAR_MACHINE_API=http://127.0.0.1:8082")
	c.await("calls and deliveries", func() bool { n := ask("status"); return n.Calls > 50 && n.Delivered > 50 })
	status := string(slurp(t, "/proc/"+c.pid+"/status"))
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000"} {
		if !strings.Contains(status, want) {
			t.Errorf("the process has not %q:\n%s", want, status)
		}
	}
	if out, err := c.also("/usr/bin/forbear", "init", "--file", "/etc/policy.yaml").CombinedOutput(); err == nil || !strings.Contains(string(out), "read-only") {
		t.Errorf("the root can be written: %v, %s", err, out)
	}
	if n := ask("end"); n.Lost+n.Refused+len(n.Failed)+len(n.Wrong) != 0 {
		t.Errorf("the neighbour saw %+v\n%s", n, &c.log)
	}
	if code := c.stop(); code != 0 {
		t.Errorf("SIGTERM ended it with %d\n%s", code, &c.log)
	}
	if _, err := os.Stat(filepath.Join(volume, "forbear.db")); err != nil {
		t.Errorf("nothing in the volume: %v", err)
	}
}

// container is a program that runs in an unpacked image.
type container struct {
	t    *testing.T
	cmd  *exec.Cmd
	root string
	pid  string
	env  []string
	log  bytes.Buffer
}

// start runs what the image's configuration says.
func start(t *testing.T, root, volume string, config v1.Config) *container {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &container{t: t, root: root, env: config.Env}
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts", "sh", "run.sh", root, volume, config.User}, config.Entrypoint...)
	args = append(args, config.Cmd...)
	c.cmd = exec.Command("unshare", append(args, "--allow-target", "127.0.0.0/8", "--drain-delay", "0")...)
	c.cmd.Env = append(config.Env, "SELF="+self)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	c.await("the start", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.cmd.Process.Pid))
		c.pid = strings.TrimSpace(string(children))
		name, _ := os.ReadFile("/proc/" + c.pid + "/comm")
		return string(name) == "forbear\n"
	})
	return c
}

// also runs another program in the container, as its user.
func (c *container) also(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{
		"--target", c.pid, "--mount", "--pid", "--net", "/usr/sbin/chroot", "--userspec=65532:65532", "--groups=", c.root,
	}, args...)...)
	cmd.Env = c.env
	return cmd
}

// curl makes a request in the container's network, which has to succeed.
func (c *container) curl(args ...string) {
	c.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--target", c.pid, "--net", "curl", "-sf", "-m", "20"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("curl %v: %v\n%s\n%s", args, err, out, &c.log)
	}
}

func (c *container) await(what string, is func() bool) {
	c.t.Helper()
	await(c.t, what, is, c.log.String)
}

// stop sends SIGTERM to the program, and returns its exit code.
func (c *container) stop() int {
	var pid int
	if _, err := fmt.Sscan(c.pid, &pid); err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

func slurp(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
