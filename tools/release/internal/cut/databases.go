package cut

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/forbear-go/forbear/tools/release/internal/run"
)

// keepDatabases adds the databases that this version makes to those with which every
// later one has to go on. The test that makes them goes on with all of them.
func (c *candidate) keepDatabases(ctx context.Context) error {
	dir := filepath.Join(c.w.Root, "cmd/forbear")
	if err := run.Quiet(ctx, dir, run.Env{"CI=true", "GOWORK="}, "go", "test", "-count=1", "-run", "TestReleasedDatabases$", ".", "-make-release", c.version); err != nil {
		return fmt.Errorf("the databases of %s: %w", c.version, err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "testdata/releases", c.version, "*"))
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		return fmt.Errorf("the databases of %s: none was kept", c.version)
	}
	c.say("%s: its databases are kept for later versions", c.version)
	return nil
}
