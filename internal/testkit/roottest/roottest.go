// Package roottest finds the files of the checkout for tests, which run in the folder
// of their package. Where the compiler found a source file says nothing in a binary
// that was built with -trimpath.
package roottest

import (
	"os"
	"path/filepath"
)

// Path returns the path of a file or folder of the checkout, sought from the working
// folder upwards. One that is not there is returned as it is.
func Path(name string) string {
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return name
}
