package cut

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartFile says which version of forbear the Helm chart runs; the chart has the same.
const chartFile = "deploy/helm/forbear/Chart.yaml"

var appVersion = regexp.MustCompile(`(?m)^appVersion: "([^"]+)"$`)

// writeChart writes a version into what names that of the chart: the chart, the example
// that depends on it, the Kustomize bases that are made from it, and their guides. A tree
// without a chart has nothing to write.
func writeChart(root, version string) error {
	chart, err := os.ReadFile(filepath.Join(root, chartFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	found := appVersion.FindSubmatch(chart)
	if found == nil {
		return fmt.Errorf("%s: no appVersion", chartFile)
	}
	// A part of a longer version or of an address is none.
	old := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(string(found[1])) + `($|[^0-9.])`)
	files, err := filepath.Glob(filepath.Join(root, "deploy/kustomize/base/*/forbear.yaml"))
	if err != nil {
		return err
	}
	files = append(files, filepath.Join(root, chartFile), filepath.Join(root, "deploy/helm/example-sidecar/Chart.yaml"), filepath.Join(root, "docs/guides/kubernetes.md"), filepath.Join(root, "docs/guides/kubernetes-sidecar.md"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text = old.ReplaceAll(text, []byte("${1}"+strings.TrimPrefix(version, "v")+"${2}"))
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
