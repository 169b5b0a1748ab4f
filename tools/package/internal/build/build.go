// Package build makes forbear for one platform, the same bytes wherever it is made.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tags leave out what forbear has no use for. grpcnotrace is gRPC's page of traces in
// the process, which forbear never serves: it brings html/template, and with that
// the linker keeps every exported method of every type, ten megabytes of them.
const Tags = "grpcnotrace"

// Stamp is the variable that has the version of a binary from a tree, where Go itself
// knows of none.
const Stamp = "github.com/forbear-go/forbear/cmd/forbear/internal/version.stamp"

// Platform is what a binary is for.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "_" + p.Arch }

// Exe is the name of the program.
func (p Platform) Exe() string {
	if p.OS == "windows" {
		return "forbear.exe"
	}
	return "forbear"
}

// All are the platforms of a release.
var All = []Platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// Chosen returns the platform of a name, such as linux_amd64, or all where that is "".
func Chosen(name string) ([]Platform, error) {
	if name == "" {
		return All, nil
	}
	i := slices.IndexFunc(All, func(p Platform) bool { return p.String() == name })
	if i < 0 {
		return nil, fmt.Errorf("no platform %q: want one of %v", name, All)
	}
	return All[i : i+1], nil
}

// Binary builds the program of the tree at root into path. What the machine knows, its
// paths, its C compiler, its repository, is not in it: anyone with the source and
// the Go version can make the same bytes, and compare.
func Binary(root, path, version string, p Platform, strip bool) error {
	flags := "-X " + Stamp + "=" + version
	if strip {
		flags += " -s -w"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", Tags, "-ldflags", flags, "-o", abs, "./cmd/forbear")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOFLAGS=", "GOWORK=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}
	return nil
}

// Time is the time that files in archives have: SOURCE_DATE_EPOCH, or that of the last
// commit, or 1980, the earliest that a zip can say.
func Time(root string) time.Time {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, _ := exec.Command("git", "-C", root, "log", "-1", "--format=%ct").Output()
		text = strings.TrimSpace(string(out))
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0).UTC()
	}
	return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
}
