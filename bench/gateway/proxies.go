package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// proxy is one proxy under test.
type proxy struct {
	name, version, addr string
	bare, budgeted      bool
	turns               []figures
	*process
}

// start starts every proxy that this machine has. All of them may retry three
// times. The ones it returns must be stopped, whatever the error.
func start(ctx context.Context, o options, dir, up string) (ps []*proxy, err error) {
	binary, err := forbearBinary(ctx, o.forbear, dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, k := range []struct {
		name    string
		bin     string
		version []string
		bare    bool
		file    string
		config  func(listen string) string
		args    func(listen, config string) []string
	}{
		{
			name: "Go ReverseProxy, no retries", bin: self, bare: true,
			args: func(listen, _ string) []string { return []string{"-proxy", up, "-listen", listen} },
		},
		{
			name: "**forbear serve**", bin: binary, file: "forbear.yaml",
			config: func(listen string) string { return fmt.Sprintf(forbearConfig, up, "false", listen) },
			args:   func(_, config string) []string { return []string{"serve", "--config", config} },
		},
		{
			name: "**forbear serve, no breaker**", bin: binary, file: "forbear-budget.yaml",
			config: func(listen string) string { return fmt.Sprintf(forbearConfig, up, "true", listen) },
			args:   func(_, config string) []string { return []string{"serve", "--config", config} },
		},
		{
			name: "HAProxy", bin: "haproxy", version: []string{"-v"}, file: "haproxy.cfg",
			config: func(listen string) string { return fmt.Sprintf(haproxyConfig, listen, up) },
			args:   func(_, config string) []string { return []string{"-db", "-q", "-f", config} },
		},
		{
			name: "nginx", bin: "nginx", version: []string{"-v"}, file: "nginx.conf",
			config: func(listen string) string {
				return fmt.Sprintf(nginxConfig, nginxUser(), dir, strings.Repeat("server "+up+" max_fails=0; ", 4), listen)
			},
			args: func(_, config string) []string { return []string{"-p", dir, "-c", config, "-e", "stderr"} },
		},
		{
			name: "Caddy", bin: "caddy", version: []string{"version"}, file: "Caddyfile",
			config: func(listen string) string { return fmt.Sprintf(caddyConfig, listen, up) },
			args: func(_, config string) []string {
				return []string{"run", "--adapter", "caddyfile", "--config", config}
			},
		},
	} {
		path, err := exec.LookPath(k.bin)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gateway: %s is not installed (apt-get install %s): left out\n", k.name, k.bin)
			continue
		}
		p := &proxy{name: k.name, version: runtime.Version(), bare: k.bare, budgeted: k.bin == binary}
		if k.version != nil {
			p.version = versionOf(ctx, path, k.version...)
		}
		if p.addr, err = freeAddr(); err != nil {
			return ps, err
		}
		config := filepath.Join(dir, k.file)
		if k.config != nil {
			if err := os.WriteFile(config, []byte(k.config(p.addr)), 0o600); err != nil {
				return ps, err
			}
		}
		if p.process, err = spawn(dir, path, k.args(p.addr, config)...); err != nil {
			return ps, err
		}
		ps = append(ps, p)
		if err := p.listening(p.addr, 20*time.Second); err != nil {
			return ps, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return ps, nil
}

const forbearConfig = `service: bench
dependencies:
  upstream:
    url: http://%s
    backoff: {base: 5ms, cap: 50ms}
    breaker: {disabled: %s}
gateway:
  listen: %s
  routes:
    - prefix: /
      dependency: upstream
`

const haproxyConfig = `global
  nbthread 2
defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 5s
  retries 3
  retry-on conn-failure empty-response response-timeout 500 502 503 504
  http-reuse always
frontend in
  bind %s
  default_backend out
backend out
  http-request disable-l7-retry if METH_POST
  server up %s
`

const nginxConfig = `%s
daemon off;
worker_processes 2;
pid %[2]s/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  upstream up { %[3]s keepalive 256; keepalive_requests 100000000; }
  server {
    listen %[4]s;
    location / {
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_next_upstream error timeout http_500 http_502 http_503 http_504;
      proxy_next_upstream_tries 4;
    }
  }
}
`

const caddyConfig = `{
	admin off
	auto_https off
	log {
		level ERROR
	}
}
http://%s {
	reverse_proxy %s {
		lb_retries 3
		lb_try_interval 5ms
		lb_retry_match {
			method GET
		}
	}
}
`

// nginxUser keeps workers able to write to the temporary folder.
func nginxUser() string {
	if os.Geteuid() == 0 {
		return "user root;"
	}
	return ""
}

// forbearBinary builds the product as its users get it, outside the workspace.
func forbearBinary(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	out := filepath.Join(dir, "forbear")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, ".")
	cmd.Dir = filepath.Join("..", "cmd", "forbear")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s (run this from the bench folder): %w", cmd.Dir, err)
	}
	return out, nil
}

// bareProxy is httputil's reverse proxy with a connection pool of a useful size
// and a pool of copy buffers, without which it is slower than need be.
func bareProxy(listen, up string) error {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 512
	target := &url.URL{Scheme: "http", Host: up}
	return (&http.Server{
		Addr:              listen,
		ReadHeaderTimeout: 5 * time.Second,
		Handler: &httputil.ReverseProxy{
			Transport:  t,
			BufferPool: &buffers{},
			Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		},
	}).ListenAndServe()
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// versionOf returns the first word that begins like a version.
func versionOf(ctx context.Context, path string, args ...string) string {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
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
