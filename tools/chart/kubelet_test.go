package chart

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// kubelet runs what the chart renders, on this machine: it makes the volumes, resolves the
// variables, and starts forbear with the rendered arguments. Paths and ports alone are
// other ones.
type kubelet struct {
	secrets map[string]string // "name/key"
	volumes map[string]string // the folder of each ConfigMap that was mounted
}

// built is the folder of the program.
var built string

// program builds forbear, once.
var program = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "build", "-o", built, ".")
	cmd.Dir = root + "cmd/forbear"
	cmd.Env = append(os.Environ(), "GOWORK=") // the workspace, as make builds it
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(built, "forbear"), nil
})

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "forbear-chart-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// container is a started one. Ports are those of this machine, by their names in the pod.
type container struct {
	*exec.Cmd
	ports map[string]string
	log   *bytes.Buffer
	ended chan error
}

// command returns the command line of a pod's forbear, with its files and variables.
func (k *kubelet) command(t *testing.T, m *manifest, p pod) *container {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Join(p.forbear.Args, "\n")
	for _, mount := range p.forbear.VolumeMounts {
		for _, v := range p.spec.Volumes {
			if v.Name == mount.Name {
				args = strings.ReplaceAll(args, "="+mount.MountPath+"/", "="+k.volume(t, m, v)+"/")
				args = strings.ReplaceAll(args+"\n", "="+mount.MountPath+"\n", "="+k.volume(t, m, v)+"\n")
				args = strings.TrimSuffix(args, "\n")
			}
		}
	}
	c := &container{ports: map[string]string{}, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	for name, flag := range map[string]string{"http": "--listen=", "metrics": "--metrics=", "admin": "--admin="} {
		before, rest, ok := strings.Cut(args, flag)
		if !ok {
			continue
		}
		_, after, _ := strings.Cut(rest, "\n")
		c.ports[name] = fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
		args = before + flag + c.ports[name] + "\n" + after
	}
	c.Cmd = exec.Command(path, strings.Fields(args)...)
	c.Dir = t.TempDir()
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range p.forbear.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = k.secret(t, e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
		}
		c.Env = append(c.Env, e.Name+"="+value)
	}
	c.Stdout, c.Stderr = c.log, c.log
	return c
}

func (k *kubelet) secret(t *testing.T, name, key string) string {
	t.Helper()
	value, ok := k.secrets[name+"/"+key]
	if !ok {
		t.Fatalf("there is no key %s in a Secret %s", key, name)
	}
	return value
}

// volume makes a volume's folder, once.
func (k *kubelet) volume(t *testing.T, m *manifest, v corev1.Volume) string {
	t.Helper()
	files, name := map[string]string{}, v.Name
	switch {
	case v.ConfigMap != nil:
		name = v.ConfigMap.Name
		for _, c := range all[*corev1.ConfigMap](m) {
			if c.Name == name {
				files = c.Data
			}
		}
	case v.Secret != nil:
		for _, i := range v.Secret.Items {
			files[i.Path] = k.secret(t, v.Secret.SecretName, i.Key)
		}
	}
	folder, ok := k.volumes[name]
	if !ok {
		folder = t.TempDir()
		if k.volumes == nil {
			k.volumes = map[string]string{}
		}
		k.volumes[name] = folder
		project(t, folder, files)
	}
	return folder
}

// project writes the files of a volume as the kubelet does: into a new folder, to which the
// link ..data is moved in one step.
func project(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	fresh, err := os.MkdirTemp(folder, "..")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		err = os.WriteFile(filepath.Join(fresh, name), []byte(text), 0o600)
		if err == nil {
			err = os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name))
		}
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	link := filepath.Join(folder, "..data_tmp")
	if err := os.Symlink(filepath.Base(fresh), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(folder, "..data")); err != nil {
		t.Fatal(err)
	}
}

// start starts the container and waits until its probes say that it is ready.
func (k *kubelet) start(t *testing.T, m *manifest, p pod) *container {
	t.Helper()
	c := k.command(t, m, p)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	for _, probe := range []*corev1.Probe{p.forbear.StartupProbe, p.forbear.LivenessProbe, p.forbear.ReadinessProbe} {
		until(t, "a probe of "+p.name, func() bool {
			select {
			case err := <-c.ended:
				t.Fatalf("%s ended: %v\n%s", p.name, err, c.log)
			default:
			}
			return c.probe(probe) == http.StatusOK
		})
	}
	return c
}

// probe asks as the kubelet does.
func (c *container) probe(p *corev1.Probe) int {
	port := strings.TrimPrefix(p.HTTPGet.Port.StrVal, "forbear-")
	resp, err := http.Get("http://" + c.ports[port] + p.HTTPGet.Path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// end ends the container as the kubelet does, and demands that it goes by itself within
// the grace period. Meanwhile draining is called.
func (c *container) end(t *testing.T, p pod, draining func()) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	draining()
	// In its pod the file system is read-only.
	if files, err := os.ReadDir(c.Dir); err != nil || len(files) > 0 {
		t.Errorf("%s wrote %v, %v", p.name, files, err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			t.Errorf("%s ended with %v\n%s", p.name, err, c.log)
		}
	case <-time.After(time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second):
		t.Errorf("%s did not end within its grace period\n%s", p.name, c.log)
	}
}

// until waits for what processes bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 12_000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within two minutes", what)
}
