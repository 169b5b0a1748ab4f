// Command pack makes the deb and the rpm of each architecture for Linux, of what
// command dist has built, and writes SHA256SUMS anew.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

func main() {
	log.SetFlags(0)
	var p pack
	flag.StringVar(&p.root, "root", "../..", "the `folder` of the source")
	flag.StringVar(&p.dist, "dist", "../../bin/dist", "the `folder` that dist has written into")
	flag.StringVar(&p.tools, "tools", "../../bin/package", "the `folder` with nfpm")
	version := flag.String("version", "0.0.0-dev", "the `version` that dist was told")
	only := flag.String("only", "", "one `platform`, such as linux_amd64")
	flag.Parse()
	platforms, err := build.Chosen(*only)
	if err == nil {
		err = p.run(*version, platforms)
	}
	if err != nil {
		log.Fatalf("pack: %v", err)
	}
}

type pack struct{ root, dist, tools string }

// run makes the packages for those of the platforms that run Linux.
func (p *pack) run(version string, platforms []build.Platform) error {
	for _, path := range []*string{&p.root, &p.dist, &p.tools} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	if err := p.compress(); err != nil {
		return err
	}
	for _, on := range platforms {
		if on.OS != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := p.nfpm(format, strings.TrimPrefix(version, "v"), on.Arch); err != nil {
				return err
			}
		}
	}
	return build.Sums(p.dist)
}

// compress writes what distributions want compressed: manual pages and the changelog.
func (p *pack) compress() error {
	packed := filepath.Join(p.dist, "packed")
	if err := os.RemoveAll(packed); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(packed, "man"), 0o755); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(p.dist, "man", "*.1"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("no manual pages in %s: run make dist first", p.dist)
	}
	for _, page := range pages {
		if err := compressed(page, filepath.Join(packed, "man", filepath.Base(page)+".gz")); err != nil {
			return err
		}
	}
	return compressed(filepath.Join(p.root, "CHANGELOG.md"), filepath.Join(packed, "CHANGELOG.md.gz"))
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
func (p *pack) nfpm(format, version, arch string) error {
	cmd := exec.Command(filepath.Join(p.tools, "nfpm"), "package", "--config", "deploy/package/nfpm.yaml", "--packager", format, "--target", p.dist)
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "VERSION="+version, "ARCH="+arch, "DIST="+p.dist,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", build.Time(p.root).Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm, %s for %s: %w\n%s", format, arch, err, out)
	}
	return nil
}
