package build

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sums writes SHA256SUMS over every file of the folder that is given out, for
// sha256sum -c.
func Sums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), "SHA256SUMS") {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sum, f.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, bufio.NewReader(f))
	return h.Sum(nil), err
}
