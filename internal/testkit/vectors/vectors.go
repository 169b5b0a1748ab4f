// Package vectors loads the conformance vectors for tests.
package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/roottest"
)

// Env names the environment variable that points at another directory of
// vectors, in the same format.
const Env = "FORBEAR_VECTORS"

// Dir returns the directory that vectors are read from: the one that
// [Env] names, or the module's own testdata/vectors.
func Dir() string {
	if dir := os.Getenv(Env); dir != "" {
		return dir
	}
	return roottest.Path(filepath.Join("testdata", "vectors"))
}

// Load reads the named file, such as "backoff.json", into dst. A missing file,
// a field that dst does not have, and text after the document fail the test: a
// vector that is not understood must not pass.
func Load(t testing.TB, name string, dst any) {
	t.Helper()
	path := filepath.Join(Dir(), name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("vectors: %v", err)
	}
	if err := Decode(data, dst); err != nil {
		t.Fatalf("vectors: %s: %v", path, err)
	}
}

// Decode is Load for a document at hand: strict about fields and about what
// follows the document.
func Decode(data []byte, dst any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("text after the document: %v", err)
	}
	return nil
}
