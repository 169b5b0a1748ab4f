// Command forbear-vet runs forbear's analyzers under the go command:
//
//	go vet -vettool=$(which forbear-vet) ./...
//
// It reports what it is sure of (high confidence), and takes the settings of
// forbear lint: the file named by FORBEAR_LINT_CONFIG, or else, for each package,
// .forbear-lint.yaml in its folder or above, and flags on top of it:
//
//	go vet -vettool=$(which forbear-vet) -confidence=medium ./...
//	go vet -vettool=$(which forbear-vet) -settings='{max_attempts: 6}' ./...
//
// The go command caches results. It learns of a changed file of settings, and of
// the end of a waiver in it, when that file lies in the folder where go vet is
// called, or above, or is the one of FORBEAR_LINT_CONFIG: keep it at the root of
// the module. Waivers in -settings are refused for that reason. The wider forms,
// with SARIF, baselines and policy files, are those of forbear lint.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/settings"
)

// configVariable names the variable that holds the path of the settings. The go command
// does not change it, so that the tool's version can depend on it.
const configVariable = "FORBEAR_LINT_CONFIG"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-V=full" {
		exit(version(os.Stdout, time.Now()))
		return
	}
	s := &settings.Settings{}
	// The go command asks for the flags first, and does not show what goes wrong.
	if len(os.Args) != 2 || os.Args[1] != "-flags" {
		var err error
		s, err = settings.Load(os.Getenv(configVariable), ".")
		exit(err)
	}
	exit(s.Apply())
	// Flags are read by unitchecker.Main, before any analysis runs.
	flag.Func("settings", "settings in `YAML`, which override those of a file", func(text string) error {
		own, err := settings.Parse("-settings", []byte(text))
		if err != nil {
			return err
		}
		if len(own.Waivers) > 0 {
			return errors.New("waivers must be in a file: the go command caches results beyond their last day")
		}
		own.Merge(s)
		s = own
		return s.Apply()
	})
	flag.Func("confidence", "lowest `confidence` that is reported: high, medium or low", func(text string) error {
		s.Confidence = text
		return s.Apply()
	})
	unitchecker.Main(append(lint.Analyzers(), lint.Directives)...)
}

// version writes what the go command makes part of its cache's keys: the contents of
// the program and of the settings, and which of their waivers hold. A fault in the
// settings is shown when the tool runs.
func version(w io.Writer, now time.Time) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, name := range []string{program, cmp.Or(os.Getenv(configVariable), settings.Discover(".", settings.FileName))} {
		if name == "" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		h.Write(src)
	}
	if s, err := settings.Load(os.Getenv(configVariable), "."); err == nil {
		for _, w := range s.Waivers {
			fmt.Fprint(h, w.Expires.Holds(now))
		}
	}
	_, err = fmt.Fprintf(w, "forbear-vet version devel buildID=%x\n", h.Sum(nil))
	return err
}

// exit ends the program when something is wrong.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "forbear-vet:", err)
		os.Exit(2)
	}
}
