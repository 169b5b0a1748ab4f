package api

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File has the breaking changes since the last version, which a review has seen. It is
// there while there are any: a release removes it.
const File = "api/breaking.txt"

const head = "# May break users of the last version, and is meant to: written by make api-update.\n"

// Meant refuses breaking changes that the file does not have, or has and are none.
func (c Changes) Meant(root string) error {
	text, err := os.ReadFile(filepath.Join(root, File))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if got := string(text); got != c.text() {
		return fmt.Errorf("%s does not have these breaking changes, or has others: if they are meant, run make api-update and commit it\n  %s",
			File, strings.Join(c.Breaking, "\n  "))
	}
	return nil
}

// Write makes the file have the breaking changes.
func (c Changes) Write(root string) error {
	name := filepath.Join(root, File)
	if len(c.Breaking) == 0 {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(c.text()), 0o644)
}

func (c Changes) text() string {
	if len(c.Breaking) == 0 {
		return ""
	}
	return head + strings.Join(c.Breaking, "\n") + "\n"
}
