package main

import (
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

// archive writes what one unpacks: a zip for Windows, and else a tar.gz. Names are in
// order and times are the source's, so that the bytes depend on nothing else.
func (d *dist) archive(p build.Platform, name string) error {
	files, err := d.files(p, filepath.Base(name)+"/")
	if err != nil {
		return err
	}
	write, suffix := writeTar, ".tar.gz"
	if p.OS == "windows" {
		write, suffix = writeZip, ".zip"
	}
	f, err := os.Create(name + suffix)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f, files, build.Time(d.Root)); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return f.Close()
}

// files reads what is in an archive, below a folder.
func (d *dist) files(p build.Platform, folder string) ([]build.File, error) {
	paths := [][2]string{
		{p.Exe(), d.program(p)},
		{"LICENSE", filepath.Join(d.Root, "LICENSE")},
		{"CHANGELOG.md", filepath.Join(d.Root, "CHANGELOG.md")},
	}
	for _, sub := range []string{"completions", "man"} {
		found, err := os.ReadDir(filepath.Join(d.Dist, sub))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			paths = append(paths, [2]string{sub + "/" + f.Name(), filepath.Join(d.Dist, sub, f.Name())})
		}
	}
	var files []build.File
	for _, path := range paths {
		text, err := os.ReadFile(path[1])
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if path[0] == p.Exe() {
			mode = 0o755
		}
		files = append(files, build.File{Name: folder + path[0], Mode: mode, Text: text})
	}
	return files, nil
}

func writeTar(w io.Writer, files []build.File, at time.Time) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := build.Tar(zw, files, at); err != nil {
		return err
	}
	return zw.Close()
}

func writeZip(w io.Writer, files []build.File, at time.Time) error {
	zw := zip.NewWriter(w)
	for _, file := range files {
		h := zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(file.Mode))
		f, err := zw.CreateHeader(&h)
		if err != nil {
			return err
		}
		if _, err := f.Write(file.Text); err != nil {
			return err
		}
	}
	return zw.Close()
}
