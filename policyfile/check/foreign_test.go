package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

// foreignFile reads a fixture of the adapters, by the detected format.
func foreignFile(t *testing.T, name string) Source {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "foreign", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if want, _, _ := strings.Cut(name, "-"); s.File.Format != want {
		t.Fatalf("%s was taken for %q", name, s.File.Format)
	}
	return s
}

// What is wrong with the configuration of others is found at its own place, and
// what is as good as it can be passes.
func TestForeign(t *testing.T) {
	for format, ext := range map[string]string{
		"grpc": "json", "envoy": "yaml", "istio": "yaml", "nginx": "conf", "haproxy": "cfg",
		"ingressnginx": "yaml", "gatewayapi": "yaml", "envoygateway": "yaml", "linkerd": "yaml",
		"resilience4j": "yml", "spring": "properties", "aws": "ini",
		"k8sjob": "yaml", "argo": "yaml", "stepfunctions": "json",
	} {
		t.Run(format, func(t *testing.T) {
			bad := Run([]Source{foreignFile(t, format+"-bad."+ext)}, Options{Now: today})
			var b bytes.Buffer
			if err := (&report.Report{Findings: bad.Findings}).Text(&b); err != nil {
				t.Fatal(err)
			}
			if err := Table(&b, bad); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "foreign", format+".txt"), b.String())
			named(t, bad)
			good := Run([]Source{foreignFile(t, format+"-good."+ext)}, Options{Now: today})
			for _, f := range good.Findings {
				if f.ID != "FC002" || f.Standard != "R-7" { // no file of Envoy's has a budget over 30 s
					t.Errorf("the good file has %v", f)
				}
			}
		})
	}
}

// The fixtures are what nginx and HAProxy themselves accept.
func TestFixturesAreReal(t *testing.T) {
	for _, tt := range []struct {
		tool, install, file string
		args                []string
	}{
		{"nginx", "nginx-light", "nginx-bad.conf", []string{"-t", "-e", "stderr", "-g", "pid /dev/null;", "-c"}},
		{"nginx", "nginx-light", "nginx-good.conf", []string{"-t", "-e", "stderr", "-g", "pid /dev/null;", "-c"}},
		{"nginx", "nginx-light", "nginx-modules.conf", []string{"-t", "-e", "stderr", "-g", "pid /dev/null;", "-c"}},
		{"haproxy", "haproxy", "haproxy-guards.cfg", []string{"-c", "-f"}},
		{"haproxy", "haproxy", "haproxy-bad.cfg", []string{"-c", "-f"}},
		{"haproxy", "haproxy", "haproxy-good.cfg", []string{"-c", "-f"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			tool, err := exec.LookPath(tt.tool)
			if err != nil {
				const missing = "%s is missing: apt-get install %s"
				if os.Getenv("CI") == "true" {
					t.Fatalf(missing, tt.tool, tt.install)
				}
				t.Skipf(missing, tt.tool, tt.install)
			}
			path, err := filepath.Abs(filepath.Join("..", "foreign", "testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), tool, append(tt.args, path)...)
			cmd.Env = append(os.Environ(), "LEDGER_RETRIES=3")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// Larger files of nginx and HAProxy are read as these programs read them.
func TestForeignWhole(t *testing.T) {
	for name, want := range map[string]string{
		"nginx-modules.conf": "carts >= 2 12s; carts 2 4s; carts 2 10s; carts 1 1m0s; carts >= 2 >= 2m0s; FC001 FC209 FC209 FC306 FC306",
		"haproxy-guards.cfg": "orders 3 21s; ledger >= 1 >= 7s; queue 4 7s; FC001 FC601",
	} {
		path := filepath.Join("..", "foreign", "testdata", name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read := ReadAll([]Input{{Name: path, Data: data, Beside: true}})
		if got := verdict(read); read.Err() != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, read.Err(), want)
		}
	}
}
