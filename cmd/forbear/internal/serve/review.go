package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

// maxReviewed bounds what is logged of one policy file.
const maxReviewed = 20

// review logs what forbear check would call an error of the file in charge, a line for
// each. It goes on serving: the policy decides what is served, and what was reviewed is what
// should run. A large file takes seconds, which nothing waits for but the next look at it.
func (s *server) review(ctx context.Context) {
	if s.path == "" {
		return
	}
	done := make(chan []report.Finding, 1)
	name, data := s.path, s.seen
	go func() { // left behind at the end
		defer close(done)
		done <- errorsOf(name, data)
	}()
	var found []report.Finding
	select {
	case <-ctx.Done():
		return
	case found = <-done:
	}
	for i, f := range found {
		if i == maxReviewed {
			s.log.Warn("forbear check finds more errors in the policy file", slog.Int("more", len(found)-i), slog.String("see", "forbear check "+name))
			return
		}
		at := policyfile.Position{File: f.File, Line: f.Line, Column: f.Column}
		s.log.Warn("forbear check finds an error in the policy file, which is served anyway",
			slog.String("rule", f.ID), slog.String("finding", fmt.Sprintf("%v: %s", at, f.Message)), slog.String("see", "forbear explain "+f.ID))
	}
}

// errorsOf returns the errors that forbear check finds in a policy file by itself, with the
// settings beside it, and none that a waiver lifts. Who may sign waivers is known where the
// file is reviewed.
func errorsOf(name string, data []byte) (found []report.Finding) {
	source, err := check.Read(name, data)
	if err != nil {
		return nil // refused, or changed meanwhile
	}
	o := check.Options{Unsigned: true}
	path := filepath.Join(filepath.Dir(name), check.SettingsName)
	if text, err := os.ReadFile(path); err == nil {
		if settings, err := check.ParseSettings(path, text); err == nil {
			o.Settings = settings
		}
	}
	for _, f := range check.Run([]check.Source{source}, o).Findings {
		if f.Severity == report.Error && f.Suppressed == "" {
			f.File = cmp.Or(f.File, name)
			found = append(found, f)
		}
	}
	return found
}
