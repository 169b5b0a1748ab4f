// Command pack makes the deb and the rpm of each architecture for Linux, of what
// command dist has built, and writes SHA256SUMS anew.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

func main() { build.Main("pack", func(j build.Job) error { return (&pack{j}).run() }) }

type pack struct{ build.Job }

// run makes the packages for those of the platforms that run Linux.
func (p *pack) run() error {
	if err := p.compress(); err != nil {
		return err
	}
	for _, on := range p.Platforms {
		if on.OS != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := p.nfpm(format, on.Arch); err != nil {
				return err
			}
		}
	}
	return build.Sums(p.Dist)
}

// compress writes what distributions want compressed: manual pages and the changelog.
func (p *pack) compress() error {
	packed := filepath.Join(p.Dist, "packed")
	if err := os.RemoveAll(packed); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(packed, "man"), 0o755); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(p.Dist, "man", "*.1"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("no manual pages in %s: run make dist first", p.Dist)
	}
	for _, page := range pages {
		if err := compressed(page, filepath.Join(packed, "man", filepath.Base(page)+".gz")); err != nil {
			return err
		}
	}
	return compressed(filepath.Join(p.Root, "CHANGELOG.md"), filepath.Join(packed, "CHANGELOG.md.gz"))
}

// compressed is gzip -9n: without a name and a time.
func compressed(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// nfpm makes one package.
func (p *pack) nfpm(format, arch string) error {
	cmd := exec.Command(filepath.Join(p.Tools, "nfpm"), "package", "--config", "deploy/package/nfpm.yaml", "--packager", format, "--target", p.Dist)
	cmd.Dir = p.Root
	cmd.Env = append(os.Environ(), "VERSION="+p.Version, "ARCH="+arch, "DIST="+p.Dist,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", build.Time(p.Root).Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm, %s for %s: %w\n%s", format, arch, err, out)
	}
	return nil
}
