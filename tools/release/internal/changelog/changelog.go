// Package changelog moves what is unreleased of a changelog, in the form of Keep a
// Changelog, under a version.
package changelog

import (
	"errors"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

// Release puts the heading of a version (v1.2.3) below Unreleased, which is empty then,
// and returns what the section says.
func Release(text, version string, day time.Time) (after, section string, err error) {
	head, rest, ok := strings.Cut(text, unreleased)
	if !ok {
		return "", "", errors.New("the changelog has no section [Unreleased]")
	}
	section = rest
	if i := strings.Index(rest, "\n## ["); i >= 0 {
		section = rest[:i+1]
	}
	if !told(section) {
		return "", "", errors.New("the changelog says nothing under [Unreleased]")
	}
	title := "## [" + strings.TrimPrefix(version, "v") + "] - " + day.UTC().Format(time.DateOnly) + "\n"
	return head + unreleased + "\n" + title + rest, strings.TrimSpace(section) + "\n", nil
}

// told reports whether a section has more than headings.
func told(section string) bool {
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}
