package serve

import (
	"net/http/httptest"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// A route whose callers are one must not share records with a caller of the same name,
// which it may have had before, or has later.
func TestSingleIsNoCallersName(t *testing.T) {
	single, err := scopeOf(&policyfile.File{}, policyfile.Principal{Single: true})
	if err != nil {
		t.Fatal(err)
	}
	header, err := scopeOf(&policyfile.File{}, policyfile.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", nil)
	all, err := single(r)
	if err != nil || all == "" {
		t.Fatalf("got %q, %v", all, err)
	}
	for _, name := range []string{"all", "single", "*"} {
		r.Header.Set(policyfile.DefaultPrincipal, name)
		if caller, err := header(r); err != nil || caller == all {
			t.Errorf("a caller called %q is all: %q, %v", name, caller, err)
		}
	}
	if all[0] != ' ' {
		t.Errorf("the value of a header may be %q", all)
	}
}
