package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNginxTime(t *testing.T) {
	for s, want := range map[string]time.Duration{"30": 30 * time.Second, "500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0} {
		if got, ok := nginxTime(s); !ok || got != want {
			t.Errorf("nginxTime(%q) = %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"x", "5y", "s"} {
		if got, ok := nginxTime(s); ok {
			t.Errorf("nginxTime(%q) = %v, want none", s, got)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	for _, tt := range []struct{ format, data, want string }{
		{"nginx", "http {\n  proxy_pass http://a;\n", "f:3:1: a block has no end"},
		{"nginx", "http }", "unexpected }"},
		{"nginx", "listen 80", `"listen" has no end`},
		{"nginx", strings.Repeat("a {", 60), "more than 50 blocks"},
		{"grpc", `{"methodConfig": [`, "not YAML"},
		{"other", "", `unknown format "other"`},
	} {
		_, _, err := Read(tt.format, "f", []byte(tt.data))
		if tt.data == "http }" {
			tt.want = `"http" has no end`
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: got %v, want %s", tt.format, tt.data, err, tt.want)
		}
	}
}

// A policy file is not taken for something else.
func TestDetectLeavesPolicyFilesAlone(t *testing.T) {
	for _, text := range []string{
		"service: a\ndependencies: {b: {owner: a}}\n",
		"defaults:\n  a: b\n",
		"backend: x\n",
	} {
		if got := Detect("policy.yaml", []byte(text)); got != "" {
			t.Errorf("%q was taken for %s", text, got)
		}
	}
}

// No input makes an adapter panic, and what it notes lies in the file.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*-*.*")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range Formats() {
			file, refused, err := Read(format, "f", data)
			if err != nil {
				continue
			}
			for _, fault := range append(refused, file.Unjudged...) {
				if fault.Line < 1 || fault.Column < 1 {
					t.Errorf("%s: fault %+v", format, fault)
				}
			}
		}
	})
}
