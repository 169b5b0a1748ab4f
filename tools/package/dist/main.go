// Command dist writes what a release consists of into a folder: an archive for each
// platform with the program, its manual pages and its completions, a list of what is
// in each program (CycloneDX), and SHA256SUMS.
//
// Two runs on the same source, with the same Go, write the same bytes.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

func main() { build.Main("dist", func(j build.Job) error { return (&dist{j}).run() }) }

type dist struct{ build.Job }

// run makes everything for all platforms of the job.
func (d *dist) run() error {
	if err := os.MkdirAll(d.Dist, 0o755); err != nil {
		return err
	}
	if err := d.extras(); err != nil {
		return err
	}
	for _, p := range d.Platforms {
		if err := d.platform(p); err != nil {
			return err
		}
	}
	return build.Sums(d.Dist)
}

// program returns where the program of a platform is.
func (d *dist) program(p build.Platform) string {
	return filepath.Join(d.Dist, p.String(), p.Exe())
}

// platform builds the program of p, and writes its archive and its list of parts.
func (d *dist) platform(p build.Platform) error {
	path := d.program(p)
	if err := build.Binary(d.Root, path, "v"+d.Version, p, true); err != nil {
		return err
	}
	name := filepath.Join(d.Dist, "forbear_"+d.Version+"_"+p.String())
	if err := d.archive(p, name); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %5.1f MB\n", p, float64(info.Size())/1e6)
	return d.parts(path, name+".cdx.json")
}

// parts writes which modules are in a program. The list is read out of the program, so
// it cannot name what is not there.
func (d *dist) parts(program, path string) error {
	cmd := exec.Command(filepath.Join(d.Tools, "cyclonedx-gomod"), "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", "v"+d.Version, "-output", path, program)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("listing the parts of %s: %w\n%s", program, err, out)
	}
	return nil
}

// extras writes the manual pages and the completions, which are the same on each
// platform: the program of this machine has the latter.
func (d *dist) extras() error {
	dir, err := os.MkdirTemp("", "forbear-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here := filepath.Join(dir, "forbear")
	if err := build.Binary(d.Root, here, "v"+d.Version, build.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, true); err != nil {
		return err
	}
	man, completions := filepath.Join(d.Dist, "man"), filepath.Join(d.Dist, "completions")
	for _, sub := range []string{man, completions} {
		if err := os.RemoveAll(sub); err != nil {
			return err
		}
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
	}
	pages, err := filepath.Abs(man)
	if err != nil {
		return err
	}
	manual := exec.Command("go", "run", "-trimpath", "-buildvcs=false", "-tags", build.Tags, "./cmd/forbear/internal/manual", "-version", "v"+d.Version, pages)
	manual.Dir, manual.Env = d.Root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=", "SOURCE_DATE_EPOCH="+strconv.FormatInt(build.Time(d.Root).Unix(), 10))
	if out, err := manual.CombinedOutput(); err != nil {
		return fmt.Errorf("manual pages: %w\n%s", err, out)
	}
	for shell, file := range map[string]string{"bash": "forbear.bash", "zsh": "_forbear", "fish": "forbear.fish"} {
		script, err := exec.Command(here, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("forbear completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(completions, file), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}
