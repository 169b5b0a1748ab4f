package chart

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is made from the chart, and for it")

const (
	root      = "../../"
	chartDir  = root + "deploy/helm/forbear"
	namespace = "apps"
)

// tool returns the path of a program that make chart-tools builds.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(root + "bin/chart/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run make chart-tools", err)
	}
	return path
}

// helm runs helm with folders of its own.
func helm(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	return helmIn(t, "", args...)
}

func helmIn(t *testing.T, folder string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(tool(t, "helm"), args...)
	cmd.Dir = folder
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "HELM_NAMESPACE="+namespace)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(errs.String())
	}
	return out, err
}

// values is the path of a file of values for the checks.
func values(name string) string { return filepath.Join(chartDir, "ci", name+".yaml") }

// template renders a chart, by default ours.
func template(t *testing.T, args ...string) *manifest {
	t.Helper()
	out, err := helm(t, append([]string{"template", "forbear", chartDir}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, out)
}

// example renders the chart that has ours as a dependency.
func example(t *testing.T) *manifest {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(root+"deploy/helm")); err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(folder, "example-sidecar")
	if out, err := helm(t, "dependency", "build", folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := helm(t, "lint", "--strict", folder); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := helm(t, "template", "checkout", folder)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, out)
}

// each renders the six cases of the checks.
func each(t *testing.T, check func(t *testing.T, m *manifest)) {
	for _, name := range []string{"minimal", "gateway", "delivery", "everything", "hardened"} {
		t.Run(name, func(t *testing.T) { check(t, template(t, "-f", values(name))) })
	}
	t.Run("sidecar", func(t *testing.T) { check(t, example(t)) })
}

// manifest is what a chart renders.
type manifest struct {
	text    []byte
	objects []runtime.Object
}

// strictly decodes YAML as a server that validates fields does: unknown fields and fields
// that are there twice are faults.
var strictly = sync.OnceValue(func() *json.Serializer {
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
})

func decode(t *testing.T, text []byte) *manifest {
	t.Helper()
	m := &manifest{text: text}
	for _, doc := range documents(text) {
		object, _, err := strictly().Decode(doc, nil, nil)
		if runtime.IsNotRegisteredError(err) { // of the Prometheus operator: kubeconform has its schemas
			u := &unstructured.Unstructured{}
			err = yaml.UnmarshalStrict(doc, &u.Object)
			object = u
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		m.objects = append(m.objects, object)
	}
	return m
}

// documents splits YAML into its documents, without those that have comments alone.
func documents(text []byte) (list [][]byte) {
	for doc := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
		var v any
		if yaml.Unmarshal(doc, &v) != nil || v != nil {
			list = append(list, doc)
		}
	}
	return list
}

// all returns the objects of a type.
func all[T runtime.Object](m *manifest) (list []T) {
	for _, o := range m.objects {
		if v, ok := o.(T); ok {
			list = append(list, v)
		}
	}
	return list
}
