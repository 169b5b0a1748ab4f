package changelog

import (
	"testing"
	"time"
)

func TestRelease(t *testing.T) {
	day := time.Date(2026, 11, 30, 23, 30, 0, 0, time.FixedZone("west", -3600))
	first := "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n"
	after, section, err := Release(first, "v0.1.0", day)
	if err != nil || section != "### Added\n\n- One.\n" {
		t.Fatalf("got %q, %v", section, err)
	}
	if want := "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n### Added\n\n- One.\n"; after != want {
		t.Fatalf("got\n%s\nwant\n%s", after, want)
	}
	if _, _, err := Release(after, "v0.2.0", day); err == nil {
		t.Error("an empty section was released")
	}
	second := "## [Unreleased]\n\n### Fixed\n\n- Two.\n\n## [0.1.0] - 2026-12-01\n\n- One.\n"
	after, section, err = Release(second, "v0.1.1", day)
	if err != nil || section != "### Fixed\n\n- Two.\n" {
		t.Fatalf("got %q, %v", section, err)
	}
	if want := "## [Unreleased]\n\n## [0.1.1] - 2026-12-01\n\n### Fixed\n\n- Two.\n\n## [0.1.0] - 2026-12-01\n\n- One.\n"; after != want {
		t.Errorf("got\n%s\nwant\n%s", after, want)
	}
	for _, text := range []string{"# Changelog\n", "## [Unreleased]\n\n### Added\n\n"} {
		if _, _, err := Release(text, "v0.1.0", day); err == nil {
			t.Errorf("%q was released", text)
		}
	}
}
