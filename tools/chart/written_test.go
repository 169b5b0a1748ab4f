package chart

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// written holds a file to what it is made from, or writes it with -update.
func written(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is not what it is made from: make chart", path)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A chart reads no file outside its folder: it has copies of the rules and the dashboard.
func TestWrittenCopies(t *testing.T) {
	for _, file := range []string{"alerts/forbear.rules.yml", "dashboards/forbear.json"} {
		data, err := os.ReadFile(root + "docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		written(t, chartDir+"/files/"+filepath.Base(file), data)
	}
}

// The table of the chart's README is its values.yaml.
func TestWrittenREADME(t *testing.T) {
	path := chartDir + "/README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "## Values\n"
	before, _, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatalf("%s has no %q", path, head)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n| value | default | what it is |\n|---|---|---|\n", before, head)
	for _, r := range documented(t) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.key, strings.ReplaceAll(r.value, "|", `\|`), r.comment)
	}
	written(t, path, []byte(b.String()))
}

// The Kustomize bases are what the chart renders, without what is helm's.
func TestWrittenKustomize(t *testing.T) {
	for _, base := range []string{"gateway", "delivery"} {
		out, err := helm(t, "template", "forbear", chartDir, "-f", "testdata/kustomize-"+base+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.WriteString("# Made from deploy/helm/forbear by make chart; what you change belongs into an overlay.\n")
		for i, doc := range documents(out) {
			var o map[string]any
			if err := yaml.Unmarshal(doc, &o); err != nil {
				t.Fatal(err)
			}
			unhelm(o)
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				b.WriteString("---\n")
			}
			b.Write(text)
		}
		written(t, root+"deploy/kustomize/base/"+base+"/forbear.yaml", b.Bytes())
	}
}

// unhelm takes away labels and annotations that only helm reads.
func unhelm(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.HasPrefix(key, "helm.sh/") || key == "app.kubernetes.io/managed-by" {
				delete(v, key)
				continue
			}
			unhelm(value)
			if m, ok := value.(map[string]any); ok && len(m) == 0 && key == "annotations" {
				delete(v, key)
			}
		}
	case []any:
		for _, value := range v {
			unhelm(value)
		}
	}
}

// kustomize builds a folder, from the disk.
func kustomize(t *testing.T, folder string) *manifest {
	t.Helper()
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := found.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// An overlay as in the guide makes objects that Kubernetes takes, with the overlay's image
// and the overlay's policy.
func TestKustomize(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(root+"deploy/kustomize")); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"gateway", "delivery"} {
		overlay := filepath.Join(folder, "overlay", base)
		if err := os.MkdirAll(overlay, 0o755); err != nil {
			t.Fatal(err)
		}
		text := guideBlock(t, "kubernetes.md", "kustomization.yaml")
		text = strings.ReplaceAll(text, "github.com/forbear-go/forbear/deploy/kustomize/base/gateway?ref=v"+version(t), "../../base/"+base)
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(overlay, "policy.yaml"), []byte("service: overlay\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := kustomize(t, overlay)
		if !bytes.Contains(m.text, []byte("service: overlay")) {
			t.Errorf("%s: the overlay's policy is not there:\n%s", base, m.text)
		}
		for _, p := range m.pods() {
			if p.forbear.Image != "registry.example/forbear:"+version(t) {
				t.Errorf("%s: the image is %s", p.name, p.forbear.Image)
			}
		}
		for _, version := range []string{"v1.29", "v1.37"} {
			conform(t, version, m)
		}
	}
}

// version is that of forbear in the chart, which a release writes.
func version(t *testing.T) string {
	t.Helper()
	var chart struct{ Version, AppVersion string }
	text, err := os.ReadFile(chartDir + "/Chart.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &chart)
	}
	if err != nil || chart.Version != chart.AppVersion {
		t.Fatalf("the chart's version is %q, forbear's %q: %v", chart.Version, chart.AppVersion, err)
	}
	return chart.AppVersion
}

// guideBlock returns a fenced block of a guide by its first line, a comment.
func guideBlock(t *testing.T, page, name string) string {
	t.Helper()
	guide, err := os.ReadFile(root + "docs/guides/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(guide), "```yaml\n# "+name+"\n")
	block, _, _ := strings.Cut(after, "```")
	if !ok {
		t.Fatalf("%s has no %s", page, name)
	}
	return block
}

// The guide's sidecar, for those who have no helm, is what the example's chart renders.
func TestGuideHasTheSidecar(t *testing.T) {
	var guide, chart map[string]any
	if err := yaml.UnmarshalStrict([]byte(guideBlock(t, "kubernetes-sidecar.md", "pod.yaml")), &guide); err != nil {
		t.Fatal(err)
	}
	docs := documents(example(t).text)
	i := slices.IndexFunc(docs, func(d []byte) bool { return bytes.Contains(d, []byte("kind: Deployment")) })
	if err := yaml.Unmarshal(docs[i], &chart); err != nil {
		t.Fatal(err)
	}
	spec := chart["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	for key, want := range guide["spec"].(map[string]any) {
		g, _ := yaml.Marshal(want)
		c, _ := yaml.Marshal(spec[key])
		if key != "containers" && !bytes.Equal(g, c) {
			t.Errorf("%s: the guide has\n%sand the chart\n%s", key, g, c)
		}
	}
	if spec["initContainers"] == nil || guide["spec"].(map[string]any)["initContainers"] == nil {
		t.Error("no initContainers")
	}
}
