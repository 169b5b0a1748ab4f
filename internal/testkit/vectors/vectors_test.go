package vectors_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// probe records a failure instead of failing the test that uses it.
type probe struct {
	testing.TB
	failed bool
}

func (p *probe) Helper() {}

func (p *probe) Fatalf(string, ...any) {
	p.failed = true
	runtime.Goexit()
}

func load(t *testing.T, name string, dst any) (failed bool) {
	p := &probe{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		vectors.Load(p, name, dst)
	}()
	<-done
	return p.failed
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(vectors.Env, dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good.json", `{"about":"x"}`)
	write("unknown.json", `{"about":"x","surprise":1}`)
	write("more.json", `{"about":"x"} {}`)
	for _, tt := range []struct {
		name string
		fail bool
	}{
		{"good.json", false},
		{"unknown.json", true},
		{"more.json", true},
		{"missing.json", true},
		{"backoff.json", true}, // not looked for elsewhere
	} {
		var dst struct {
			About string `json:"about"`
		}
		if got := load(t, tt.name, &dst); got != tt.fail {
			t.Errorf("%s: failed = %v, want %v", tt.name, got, tt.fail)
		}
	}
}

func TestDefaultDirectoryHasTheVectors(t *testing.T) {
	t.Setenv(vectors.Env, "")
	if _, err := os.Stat(filepath.Join(vectors.Dir(), "backoff.json")); err != nil {
		t.Error(err)
	}
}
