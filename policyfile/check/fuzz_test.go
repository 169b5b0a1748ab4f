package check

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whatever can be read can be judged.
func FuzzRun(f *testing.F) {
	paths, err := filepath.Glob("testdata/findings/*/*")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read("f.yaml", data)
		if err != nil {
			return
		}
		got := Run([]Source{s, s}, Options{Now: today, MaxAmplification: 1.2, MaxDuration: time.Second})
		for _, l := range got.Loads {
			if l.Duration < 0 || l.With > l.Without+1e-9 || l.Busy > l.With+1e-9 {
				t.Errorf("load %+v", l)
			}
		}
		for _, x := range got.Findings {
			if x.Line < 1 || x.Message == "" {
				t.Errorf("finding %+v", x)
			}
		}
	})
}
