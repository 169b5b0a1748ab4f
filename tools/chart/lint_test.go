package chart

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// helm lint finds nothing, whatever the values.
func TestLint(t *testing.T) {
	files, err := filepath.Glob(values("*"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, f := range files {
		if out, err := helm(t, "lint", "--strict", chartDir, "-f", f); err != nil {
			t.Errorf("%s: %v\n%s", f, err, out)
		}
	}
}

// Kubernetes takes the objects: by the schemas of the oldest version that the chart is for,
// and of the newest one.
func TestKubeconform(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, version := range []string{"v1.29", "v1.37"} {
			conform(t, version, m)
		}
	})
}

var summary = regexp.MustCompile(`Summary: (\d+) resources? found .*Valid: (\d+), Invalid: 0, Errors: 0, Skipped: 0`)

func conform(t *testing.T, version string, m *manifest) {
	t.Helper()
	location := func(folder string) string {
		return schemas(t) + "/" + folder + "/{{.ResourceKind}}{{.KindSuffix}}.json"
	}
	cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-summary", "-schema-location", location(version), "-schema-location", location("crds"), "-")
	cmd.Stdin = bytes.NewReader(m.text)
	out, err := cmd.CombinedOutput()
	found := summary.FindStringSubmatch(string(out))
	if want := fmt.Sprint(len(m.objects)); err != nil || found == nil || found[1] != want || found[2] != want {
		t.Errorf("%s: %v: want %s valid objects:\n%s", version, err, want, out)
	}
}

// The check that the checks are strict: a field that no version has is found.
func TestKubeconformIsStrict(t *testing.T) {
	m := template(t, "-f", values("minimal"))
	m.text = bytes.Replace(m.text, []byte("maxUnavailable: 1\n"), []byte("maxUnavailable: 1\n  maxUnavailabel: 1\n"), 1)
	cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-schema-location", schemas(t)+"/v1.37/{{.ResourceKind}}{{.KindSuffix}}.json", "-")
	cmd.Stdin = bytes.NewReader(m.text)
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("maxUnavailabel")) {
		t.Errorf("a misspelt field: %v\n%s", err, out)
	}
}
