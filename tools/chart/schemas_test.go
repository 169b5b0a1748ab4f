package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// source is a module that has schemas.
type source struct{ folder, module, version, sum string }

// The oldest version of Kubernetes that the chart is for, and the newest one.
var sources = []source{
	{"v1.29", "k8s.io/kubernetes", "v1.29.15", "h1:hLcyf3XmxtfkubCEmmPX5QVD7lDclXjvEUrJeP283LM="},
	{"v1.37", "k8s.io/kubernetes", "v1.37.2", "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="},
	{"crds", "github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="},
}

// schemas returns a folder with JSON Schemas for kubeconform, made from the OpenAPI
// document of Kubernetes and the CRDs of the Prometheus operator. Both come from the
// module proxy, pinned by their sums, since the schemas that kubeconform finds by itself
// are on a host of their own, and are megabytes to keep.
func schemas(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root + "bin/chart/schemas")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if err := s.write(filepath.Join(dir, s.folder)); err != nil {
			t.Fatalf("%s: %v", s.module, err)
		}
	}
	return dir
}

// write converts the schemas of one source, unless those of this version are there.
func (s source) write(folder string) error {
	stamp := filepath.Join(folder, "version")
	if done, _ := os.ReadFile(stamp); string(done) == s.version {
		return nil
	}
	from, err := s.download()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if s.folder == "crds" {
		err = crds(filepath.Join(from, "example", "prometheus-operator-crd"), folder)
	} else {
		err = openAPI(filepath.Join(from, "api", "openapi-spec", "swagger.json"), folder)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(s.version), 0o644)
}

// download returns the folder of the module.
func (s source) download() (string, error) {
	var errs bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", s.module+"@"+s.version)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s%s", err, out, &errs)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", err
	}
	if got.Sum != s.sum {
		return "", fmt.Errorf("%s has the sum %s, want %s", s.version, got.Sum, s.sum)
	}
	return got.Dir, nil
}

// object is a schema, or a part of one.
type object = map[string]any

// openAPI converts an OpenAPI document: one file of definitions, and one for each kind.
func openAPI(path, folder string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var doc struct{ Definitions object }
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	for name, definition := range doc.Definitions {
		d := definition.(object)
		strict(d)
		if strings.HasSuffix(name, ".resource.Quantity") {
			d["type"] = []string{"string", "number"}
		}
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			k := k.(object)
			ref := object{"$ref": "definitions.json#/definitions/" + name}
			if err := save(folder, k["group"].(string), k["version"].(string), k["kind"].(string), ref); err != nil {
				return err
			}
		}
	}
	data, err = json.Marshal(object{"definitions": doc.Definitions})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "definitions.json"), data, 0o644)
}

// crds converts definitions of custom resources.
func crds(from, folder string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no definitions in %s", from)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema object }
				}
			}
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return err
		}
		for _, v := range crd.Spec.Versions {
			strict(v.Schema.OpenAPIV3Schema)
			if err := save(folder, crd.Spec.Group, v.Name, crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// save writes the schema of a kind under the name that kubeconform looks for.
func save(folder, group, version, kind string, schema object) error {
	name := kind + "-" + version
	if group, _, _ = strings.Cut(group, "."); group != "" {
		name = kind + "-" + group + "-" + version
	}
	data, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, strings.ToLower(name)+".json"), data, 0o644)
}

// strict makes a schema refuse unknown fields, and know what may be a number or a text.
func strict(schema any) {
	switch s := schema.(type) {
	case object:
		if s["format"] == "int-or-string" {
			delete(s, "format")
			s["type"] = []string{"string", "integer"}
		}
		_, open := s["additionalProperties"]
		if _, ok := s["properties"].(object); ok && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		for key, value := range s {
			if key != "additionalProperties" || value != false {
				strict(value)
			}
		}
	case []any:
		for _, value := range s {
			strict(value)
		}
	}
}
