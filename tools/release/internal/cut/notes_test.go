package cut

import "testing"

// Notes are read on a page of their own, where the files of the repository are not.
func TestLinksOfNotes(t *testing.T) {
	got := fromAnywhere("- [UPGRADING.md](UPGRADING.md), [a guide](docs/guides/http.md#bodies) and [a site](https://semver.org/a).", "v1.2.3")
	want := "- [UPGRADING.md](https://github.com/forbear-go/forbear/blob/v1.2.3/UPGRADING.md), " +
		"[a guide](https://github.com/forbear-go/forbear/blob/v1.2.3/docs/guides/http.md#bodies) and [a site](https://semver.org/a)."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
