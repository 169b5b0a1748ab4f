package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

// entry is one file of an archive.
type entry struct {
	name, path string
	mode       int64
}

// archive writes what one unpacks: a zip for Windows, and else a tar.gz. Names are in
// order and times are the source's, so that the bytes depend on nothing else.
func (d *dist) archive(p build.Platform, name string) error {
	entries := []entry{
		{p.Exe(), d.program(p), 0o755},
		{"LICENSE", filepath.Join(d.root, "LICENSE"), 0o644},
		{"CHANGELOG.md", filepath.Join(d.root, "CHANGELOG.md"), 0o644},
	}
	for _, sub := range []string{"completions", "man"} {
		files, err := os.ReadDir(filepath.Join(d.out, sub))
		if err != nil {
			return err
		}
		for _, f := range files {
			entries = append(entries, entry{sub + "/" + f.Name(), filepath.Join(d.out, sub, f.Name()), 0o644})
		}
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
	if err := write(f, filepath.Base(name)+"/", entries, build.Time(d.root)); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return f.Close()
}

// writeTar writes a tar.gz whose files belong to root.
func writeTar(w io.Writer, folder string, entries []entry, at time.Time) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		b, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		h := tar.Header{
			Name: folder + e.name, Mode: e.mode, Size: int64(len(b)), ModTime: at,
			Uname: "root", Gname: "root", Format: tar.FormatUSTAR, Typeflag: tar.TypeReg,
		}
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := tw.Write(b); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// writeZip writes a zip.
func writeZip(w io.Writer, folder string, entries []entry, at time.Time) error {
	zw := zip.NewWriter(w)
	for _, e := range entries {
		b, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		h := zip.FileHeader{Name: folder + e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(e.mode))
		f, err := zw.CreateHeader(&h)
		if err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return zw.Close()
}
