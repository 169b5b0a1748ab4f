package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVet runs the tool under go vet: facts cross packages, directives hold,
// and a clean module passes.
func TestVet(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "forbear-vet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"send/send.go": `package send

import "net/http"

func Post(url string) error {
	resp, err := http.Post(url, "text/plain", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
`,
		"m.go": `package m

import (
	"time"

	"example.com/m/send"
)

func retried() (err error) {
	for attempt := 0; attempt < 3; attempt++ {
		if err = send.Post("x"); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func suppressed() (err error) {
	//forbear:ignore FB1001,FB1030 the server drops duplicates and asks for 1 s
	for attempt := 0; attempt < 3; attempt++ {
		if err = send.Post("x"); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

var _, _ = retried, suppressed
`,
	}
	// With -trimpath the go command would take the same file for that of the last run, and
	// mend it there.
	files["m.go"] = strings.Replace(files["m.go"], "package m", "package m // in "+dir, 1)
	for name, text := range files {
		path := filepath.Join(dir, "m", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vet := func(args ...string) (string, error) {
		cmd := exec.Command("go", append([]string{"vet", "-vettool=" + tool}, args...)...)
		cmd.Dir = filepath.Join(dir, "m")
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := vet("./...")
	if err == nil || !strings.Contains(out, "m.go:10:2: FB1001") || !strings.Contains(out, "m.go:10:2: FB1030") {
		t.Errorf("got %v\n%s\nwant FB1001 and FB1030 at m.go:10:2", err, out)
	}
	if strings.Contains(out, "m.go:2") || strings.Contains(out, "FB0003") {
		t.Errorf("got\n%s\nwant nothing from the suppressed function", out)
	}
	if out, err := vet("./send"); err != nil {
		t.Errorf("clean package: %v\n%s", err, out)
	}
	// The fixes of the linter are those of go vet, and what is suppressed stays.
	if out, err := vet("-fix", "./..."); err != nil {
		t.Errorf("fix: %v\n%s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(dir, "m", "m.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "rand.N(2 * time.Second)"); n != 1 || strings.Count(string(got), "time.Sleep(time.Second)") != 1 {
		t.Errorf("got\n%s\nwant one of the two waits at random", got)
	}
}
