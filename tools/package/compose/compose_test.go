// Package compose holds the compose file of examples/gateway to what Docker reads: its
// schema, by the library that docker compose itself is made of, and to the image and
// the policy beside it. No container is started.
package compose

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

const folder = "../../../examples/gateway"

// load reads the file as docker compose does, with the variables given. What it would
// warn of is a fault, too.
func load(t *testing.T, file string, env ...string) (*types.Project, error) {
	t.Helper()
	hook := logtest.NewGlobal()
	defer func() { logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{}) }()
	o, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithName("example"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	for _, line := range hook.AllEntries() {
		t.Errorf("docker compose would say: %s", line.Message)
	}
	return p, err
}

func TestCompose(t *testing.T) {
	p, err := load(t, folder+"/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gateway, shop := p.Services["gateway"], p.Services["shop"]
	if gateway.Image != "forbear:latest" {
		t.Errorf("the image is %s, and the README gives Docker forbear:latest", gateway.Image)
	}
	// The image has one program, which is its entrypoint, and runs as its own user.
	if gateway.Entrypoint != nil || gateway.User != "" || !gateway.ReadOnly || len(gateway.Ports) > 0 {
		t.Errorf("the gateway has the entrypoint %q, the user %q, ports %v, and is read-only: %v", gateway.Entrypoint, gateway.User, gateway.Ports, gateway.ReadOnly)
	}
	flags := flags(t, gateway.Command)
	check := gateway.HealthCheck.Test
	if want := "http://127.0.0.1" + flags["--metrics"] + "/health/ready"; !slices.Equal(check, []string{"CMD", "/usr/bin/forbear", "health", want}) {
		t.Errorf("the health check is %q, and readiness is at %s", check, want)
	}
	mounts(t, p, map[string]string{"gateway": flags["--config"], "shop": "/app/shop.py", "payments": "/app/payments.py"})

	drain, err := time.ParseDuration(flags["--drain-timeout"])
	if err != nil {
		t.Fatal(err)
	}
	const delay = 5 * time.Second // serve's own --drain-delay
	if grace := time.Duration(*gateway.StopGracePeriod); grace < drain+delay {
		t.Errorf("Docker kills it after %v, and draining may take %v", grace, drain+delay)
	}
	for name, d := range shop.DependsOn {
		if d.Condition != types.ServiceConditionHealthy {
			t.Errorf("the shop starts when %s is %s", name, d.Condition)
		}
		if c := p.Services[name].HealthCheck; c == nil || c.Disable {
			t.Errorf("%s has no health check", name)
		}
	}
	addresses(t, p, flags["--listen"])
}

// addresses follows the shop's calls: to the gateway, by a route of the policy, to the
// payments, over networks that both have.
func addresses(t *testing.T, p *types.Project, listen string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy := string(text)
	u, err := url.Parse(*p.Services["shop"].Environment["PAYMENTS_URL"])
	if err != nil || u.Host != "gateway"+listen || !strings.Contains(policy, "prefix: "+u.Path+" ") {
		t.Errorf("the shop calls %v, and the gateway listens on %s", u, listen)
	}
	command := p.Services["payments"].Command
	if port := command[len(command)-1]; !strings.Contains(policy, "url: http://payments:"+port+" ") {
		t.Errorf("the policy has no payments on port %s", port)
	}
	meet := func(a, b string) (found bool) {
		for name := range p.Services[a].Networks {
			_, both := p.Services[b].Networks[name]
			found = found || both
		}
		return found
	}
	if !meet("shop", "gateway") || !meet("gateway", "payments") || meet("shop", "payments") {
		t.Error("the shop should reach the payments through the gateway, and not by itself")
	}
}

// flags returns the flags of a command with their values.
func flags(t *testing.T, command []string) map[string]string {
	t.Helper()
	if len(command)%2 != 1 || command[0] != "serve" {
		t.Fatalf("the command is %q", command)
	}
	found := map[string]string{}
	for pair := range slices.Chunk(command[1:], 2) {
		found[pair[0]] = pair[1]
	}
	return found
}

// mounts finds the file that each service has in its place, read-only.
func mounts(t *testing.T, p *types.Project, want map[string]string) {
	t.Helper()
	for name, target := range want {
		volumes := p.Services[name].Volumes
		if len(volumes) != 1 || volumes[0].Target != target || !volumes[0].ReadOnly {
			t.Errorf("%s has %v, want %s", name, volumes, target)
			continue
		}
		if info, err := os.Stat(volumes[0].Source); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v: Docker would make a folder of it", name, err)
		}
	}
}

// The image of one's own registry is a variable.
func TestImageIsAVariable(t *testing.T) {
	p, err := load(t, folder+"/compose.yaml", "FORBEAR_IMAGE=registry.example.com/forbear:1.2.3")
	if err != nil || p.Services["gateway"].Image != "registry.example.com/forbear:1.2.3" {
		t.Errorf("%v, %v", p.Services["gateway"].Image, err)
	}
}

// The schema is looked at: a key that it has not is refused.
func TestSchemaIsHeld(t *testing.T) {
	text, err := os.ReadFile(folder + "/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "compose.yaml")
	wrong := strings.Replace(string(text), "stop_grace_period", "stop_grace", 1)
	if err := os.WriteFile(name, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, name); err == nil || !strings.Contains(err.Error(), "stop_grace") {
		t.Errorf("got %v", err)
	}
}
