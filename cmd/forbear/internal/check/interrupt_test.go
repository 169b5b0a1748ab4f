package check

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/report"
)

// TestInterrupted: a run ends with its context, whatever it is doing. Here it is held
// by a reader that takes no more.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	defer func() { _ = out.Close() }()
	var errs clitest.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Command().Run(ctx, &cli.Streams{Out: in, Err: &errs}, []string{clitest.File(t, "p.yaml", warned)})
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case got := <-code:
		if got != cli.ExitUsage || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("exit code %d with %q, want 2 and interrupted", got, errs.String())
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// TestReportsAreWhole: what could not be written to its end leaves the old file.
func TestReportsAreWhole(t *testing.T) {
	half := func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, io.ErrClosedPipe)
	}
	whole := func(w io.Writer) error { _, err := io.WriteString(w, "whole"); return err }
	for _, tt := range []struct {
		name  string
		write func(io.Writer) error
		want  string
	}{
		{"written", whole, "whole"},
		{"failed", half, "old"},
	} {
		path := clitest.File(t, "report", "old")
		if err := os.Chmod(path, 0o666); err != nil { // more than the umask lets a new file have
			t.Fatal(err)
		}
		err := report.ToFile(path, tt.write)
		if got, _ := os.ReadFile(path); string(got) != tt.want || (err == nil) != (tt.want == "whole") {
			t.Errorf("%s: %q with %v, want %q", tt.name, got, err, tt.want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("%s: %v, %v, want the old permissions", tt.name, info, err)
		}
		if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
			t.Errorf("%s: litter %v", tt.name, all)
		}
	}
}

// TestReportsToDevices: what is no regular file is written to, and stays what it is.
func TestReportsToDevices(t *testing.T) {
	r := clitest.Run(t, Command(), "", "-o", "json:"+os.DevNull, clitest.File(t, "p.yaml", passing))
	if info, err := os.Stat(os.DevNull); r.Code != cli.ExitOK || err != nil || info.Mode().IsRegular() {
		t.Errorf("%+v: %v, %v", r, info, err)
	}
}
