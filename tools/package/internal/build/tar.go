package build

import (
	"archive/tar"
	"io"
	"strings"
	"time"
)

// File is one entry of an archive or a layer; a name that ends in a slash is a folder.
type File struct {
	Name  string
	Mode  int64
	Owner int // user and group, by number
	Text  []byte
}

// Tar writes the files in their order, with one time for all, so that the bytes depend
// on nothing else.
func Tar(w io.Writer, files []File, at time.Time) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		h := tar.Header{
			Name: f.Name, Mode: f.Mode, Uid: f.Owner, Gid: f.Owner, Size: int64(len(f.Text)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := tw.Write(f.Text); err != nil {
			return err
		}
	}
	return tw.Close()
}
