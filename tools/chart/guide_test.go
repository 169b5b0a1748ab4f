package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The helm commands of the guides and of the chart's README do what they say, as far as
// helm goes without a cluster: the same words render, and print the notes.
func TestGuideCommands(t *testing.T) {
	folder := t.TempDir()
	for _, link := range []string{"deploy", "docs"} {
		path, err := filepath.Abs(root + link)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte("service: guide\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"docs/guides/kubernetes.md": "http://forbear.apps:8080", "docs/guides/kubernetes-delivery.md": "http://forbear-delivery.apps:8080", "deploy/helm/forbear/README.md": "http://forbear.apps:8080"}
	for file, address := range want {
		text, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.ReplaceAll(string(text), "\\\n", " ")
		var notes strings.Builder
		for line := range strings.Lines(lines) {
			args := strings.Fields(strings.TrimPrefix(line, "$ "))
			if len(args) < 4 || args[0] != "helm" || args[1] != "install" {
				continue
			}
			out, err := helmIn(t, folder, append(args[1:], "--dry-run=client")...)
			if err != nil {
				t.Errorf("%s: %s: %v", file, line, err)
			}
			notes.WriteString(string(out))
		}
		if !strings.Contains(notes.String(), address) || strings.Contains(notes.String(), "<no value>") {
			t.Errorf("%s: the notes have no %s:\n%s", file, address, notes.String())
		}
	}
}

// The notes say how to look into what was installed, with the token where one is demanded.
func TestNotes(t *testing.T) {
	out, err := helm(t, "install", "forbear", chartDir, "--dry-run=client", "-f", values("everything"))
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(string(out), "NOTES:")
	for _, want := range []string{
		"The gateway is http://forbear.apps:8080", "The delivery is http://forbear-delivery.apps:8080",
		"kubectl -n apps exec deploy/forbear -- forbear top --admin-token-file /etc/forbear/admin/token\n",
		"ConfigMap forbear-policy", "ConfigMap forbear-sidecar-policy",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "Anyone who can reach the gateway") {
		t.Error("the notes warn of an open gateway where there is a NetworkPolicy")
	}
}
