package cut

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// compare holds what is exported to the last version. What may break users has to be
// written down, which a review has seen, and waits for the next minor version, or from
// v1 on for another module path; what was experimental is only told.
func (c *candidate) compare(ctx context.Context, w *workspace.Workspace) error {
	if c.last == "" {
		return nil
	}
	var err error
	if c.changes, err = api.Since(ctx, w, c.last); err != nil {
		return err
	}
	broken := strings.Join(c.changes.Breaking, "\n  ")
	if broken != "" && (semver.Major(c.last) != "v0" || semver.MajorMinor(c.last) == semver.MajorMinor(c.version)) {
		return fmt.Errorf("%s would break users of %s, and its number promises that it does not:\n  %s", c.version, c.last, broken)
	}
	if err := c.changes.Meant(w.Root); err != nil {
		return err
	}
	c.say("exported, since %s:\n%s", c.last, c.changes)
	return nil
}
