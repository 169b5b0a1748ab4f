package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"
)

// contender is a proxy that can be put to the test.
type contender struct {
	name, label    string // label as the tables show it
	path, version  string
	bare, budgeted bool
	template       string // in testdata; "" for none
	args           func(s setting, config string) []string
	env            []string
}

// setting is what one process of a contender is configured with: the fields are
// those that the templates name.
type setting struct {
	Upstream, Listen, Admin, Dir string
	// The times that all contenders share, as far as they have them.
	Connect, Attempt, Total, Idle time.Duration
	Base, Cap                     time.Duration // of the waits before retries
	// Streams says that the operator knows of long silences: nothing but the
	// caller ends a response that has begun.
	Streams bool
}

// times are those of the tables.
func times() setting {
	return setting{
		Connect: 500 * time.Millisecond, Attempt: time.Second, Total: 5 * time.Second, Idle: 2 * time.Second,
		Base: 50 * time.Millisecond, Cap: 500 * time.Millisecond,
	}
}

// User keeps nginx's workers able to write to the temporary folder.
func (s setting) User() string {
	if os.Geteuid() == 0 {
		return "user root;"
	}
	return ""
}

//go:embed testdata/*.tmpl
var files embed.FS

var templates = template.Must(template.New("").
	Funcs(template.FuncMap{"ms": func(d time.Duration) int64 { return d.Milliseconds() }}).
	ParseFS(files, "testdata/*.tmpl"))

// contenders returns those that this machine has, and names the others.
func contenders(ctx context.Context, o options, dir string) ([]*contender, error) {
	binary, err := forbearBinary(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var found []*contender
	for _, c := range []*contender{
		{
			name: "bare", label: "Go ReverseProxy, no retries", path: self, bare: true,
			args: func(s setting, _ string) []string {
				return []string{"-proxy", s.Upstream, "-listen", s.Listen, "-wait", s.Attempt.String()}
			},
		},
		{
			name: "forbear", label: "**forbear serve**", path: binary, budgeted: true, template: "forbear.yaml.tmpl",
			args: func(s setting, config string) []string {
				return []string{"serve", "--config", config, "--admin", s.Admin}
			},
		},
		{
			name: "haproxy", label: "HAProxy", path: "haproxy", version: "-v", template: "haproxy.cfg.tmpl",
			args: func(_ setting, config string) []string { return []string{"-db", "-q", "-f", config} },
		},
		{
			name: "nginx", label: "nginx", path: "nginx", version: "-v", template: "nginx.conf.tmpl",
			args: func(s setting, config string) []string {
				return []string{"-p", s.Dir, "-c", config, "-e", "stderr"}
			},
		},
		{
			name: "caddy", label: "Caddy", path: "caddy", version: "version", template: "Caddyfile.tmpl",
			args: func(_ setting, config string) []string {
				return []string{"run", "--adapter", "caddyfile", "--config", config}
			},
		},
	} {
		if o.only != "" && !c.bare && !strings.Contains(","+o.only+",", ","+c.name+",") {
			continue
		}
		path, err := exec.LookPath(c.path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gateway: %s is not installed (apt-get install %s): left out\n", c.label, c.name)
			continue
		}
		if c.path, c.version = path, runtimeOr(ctx, path, c.version); c.budgeted && o.profile != "" {
			c.env = []string{"FORBEAR_BENCH_PROFILE=" + o.profile}
		}
		found = append(found, c)
	}
	return found, nil
}

// running is a process of a contender.
type running struct {
	*process
	addr string
}

// launch starts a contender with a folder of its own, and waits until it listens.
// What it returns must be stopped.
func (c *contender) launch(s setting, dir string) (*running, error) {
	var err error
	if s.Dir, err = os.MkdirTemp(dir, c.name+"-"); err != nil {
		return nil, err
	}
	if s.Listen, err = freeAddr(); err != nil {
		return nil, err
	}
	if s.Admin, err = freeAddr(); err != nil {
		return nil, err
	}
	config := filepath.Join(s.Dir, strings.TrimSuffix(c.template, ".tmpl"))
	if c.template != "" {
		f, err := os.Create(config)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(templates.ExecuteTemplate(f, c.template, s), f.Close()); err != nil {
			return nil, err
		}
	}
	p, err := spawn(s.Dir, c.env, c.path, c.args(s, config)...)
	if err != nil {
		return nil, err
	}
	if err := p.listening(s.Listen, 20*time.Second); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: %w", c.label, err)
	}
	return &running{p, s.Listen}, nil
}

// forbearBinary builds the product as its users get it, outside the workspace. For
// a profile one file is laid over it: see testdata/profile.go.txt.
func forbearBinary(ctx context.Context, o options, dir string) (string, error) {
	if o.forbear != "" {
		return filepath.Abs(o.forbear)
	}
	out := filepath.Join(dir, "forbear")
	args := []string{"build", "-o", out}
	cmd := exec.CommandContext(ctx, "go")
	cmd.Dir = filepath.Join("..", "cmd", "forbear")
	if o.profile != "" {
		overlay, err := overlaid(cmd.Dir, dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd.Args = append(append(cmd.Args, args...), ".")
	cmd.Env = append(os.Environ(), "GOWORK=") // off for bench, and not for forbear
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s (run this from the bench folder): %w", cmd.Dir, err)
	}
	return out, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// runtimeOr returns the version that a program prints of itself, or the one of Go.
func runtimeOr(ctx context.Context, path, flag string) string {
	if flag == "" {
		return runtime.Version()
	}
	out, err := exec.CommandContext(ctx, path, flag).CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		return "?"
	}
	for _, word := range strings.FieldsFunc(string(out), func(r rune) bool { return r == ' ' || r == '/' || r == '\n' }) {
		if word = strings.TrimPrefix(word, "v"); word != "" && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return "?"
}
