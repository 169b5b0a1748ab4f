package cut

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A release writes its version wherever the chart names one, and nowhere else.
func TestWriteChart(t *testing.T) {
	const here = "../../../.."
	root := t.TempDir()
	for _, folder := range []string{"deploy", "docs/guides"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(here, folder))); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := writeChart(root, "v7.8.9-rc.1"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		chartFile:                                     "\nversion: 7.8.9-rc.1\nappVersion: \"7.8.9-rc.1\"",
		"deploy/helm/example-sidecar/Chart.yaml":      "\n    version: 7.8.9-rc.1\n",
		"deploy/kustomize/base/gateway/forbear.yaml":  "image: forbear:7.8.9-rc.1\n",
		"deploy/kustomize/base/delivery/forbear.yaml": "app.kubernetes.io/version: 7.8.9-rc.1\n",
		"docs/guides/kubernetes.md":                   "base/gateway?ref=v7.8.9-rc.1\n",
		"docs/guides/kubernetes-sidecar.md":           "image: registry.example/forbear:7.8.9-rc.1\n",
	} {
		if !strings.Contains(read(name), want) {
			t.Errorf("%s: no %q in\n%.600s", name, want, read(name))
		}
	}
	if text := read("docs/guides/kubernetes-sidecar.md"); !strings.Contains(text, "checkout:v42") || !strings.Contains(text, "127.0.0.1:9080") {
		t.Error("more was written than forbear's version")
	}
	if err := writeChart(t.TempDir(), "v1.0.0"); err != nil {
		t.Errorf("a tree without a chart: %v", err)
	}
}
