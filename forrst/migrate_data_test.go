package forrst_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/forrst"
)

// A field that bears the name of the boolean is the protocol's in the errors of a
// response, and anyone's elsewhere.
func TestMigrateLeavesBusinessDataAlone(t *testing.T) {
	const protocol = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1",`
	for _, tc := range []struct {
		name, in   string
		kept, left int
	}{
		{"a result", protocol + `"result":{"code":"NIGHTLY_EXPORT","retryable":true,"state":"failed"}}`, 1, 0},
		{"a list in a result", protocol + `"result":[{"code":"A","retryable":true},{"code":"B","retryable":false}]}`, 2, 0},
		{"a partial result with errors of its own", protocol + `"result":{"imported":2,"errors":[{"code":"ROW_3","message":"m","retryable":true}]}}`, 1, 0},
		{"a result without its protocol", `{"id":"req_1","result":{"job":{"code":"X","retryable":true}}}`, 1, 0},
		{"the arguments of a request", protocol + `"call":{"function":"jobs.create","arguments":{"code":"X","retryable":true}}}`, 1, 0},
		{"meta", protocol + `"result":null,"meta":{"code":"X","retryable":true}}`, 1, 0},
		{"an extension of another's", protocol + `"result":1,"extensions":[{"urn":"urn:acme:ext:jobs","data":{"code":"X","retryable":true}}]}`, 1, 0},
		{"a document in a list that is no response", `{"jobs":[{"code":"X","retryable":true}]}`, 0, 1},
		{"errors that are not the protocol's", `{"errors":[{"code":"row 3","retryable":true}]}`, 0, 1},
		{"errors beside a result", `{"result":{"a":1},"errors":[{"code":"X","retryable":true}]}`, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := forrst.Migrate([]byte(tc.in), false)
			if string(m.Text) != tc.in || len(m.Changes) != 0 {
				t.Errorf("changed to\n%s\nwant\n%s", m.Text, tc.in)
			}
			if len(m.Kept) != tc.kept || len(m.Left) != tc.left {
				t.Errorf("kept %v, left %v; want %d and %d", m.Kept, m.Left, tc.kept, tc.left)
			}
		})
	}
}

// The details of an error are its author's: the boolean beside them goes.
func TestMigrateKeepsTheDetailsOfErrors(t *testing.T) {
	const in = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"r","result":null,"errors":[{"code":"UNAVAILABLE","retryable":true,"details":{"job":{"code":"X","retryable":false}}}]}`
	const want = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"r","result":null,"errors":[{"code":"UNAVAILABLE","details":{"job":{"code":"X","retryable":false}}}],"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":true,"strategy":"exponential","after":{"value":1,"unit":"second"}}}]}`
	if m := forrst.Migrate([]byte(in), false); string(m.Text) != want || len(m.Kept) != 1 {
		t.Errorf("got\n%s\nkept %v; want\n%s\nand one", m.Text, m.Kept, want)
	}
}

// An example beside its request is rewritten under whatever name it stands.
func TestMigrateFindsEnvelopesInExamples(t *testing.T) {
	const response = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"r","result":null,"errors":[{"code":"UNAVAILABLE","retryable":true}]}`
	for _, around := range []string{`{"examples":[{"result":{"value":%s}}]}`, `{"data":%s}`, `[%s]`} {
		m := forrst.Migrate(fmt.Appendf(nil, around, response), false)
		if bytes.Contains(m.Text, []byte("retryable")) || len(m.Changes) != 2 || len(m.Left)+len(m.Kept) != 0 {
			t.Errorf("%s: got\n%s\nleft %v, kept %v", around, m.Text, m.Left, m.Kept)
		}
	}
}

// TestMigrateListsWhatItLeaves holds the whole page of a protocol's documentation to
// what a person would list.
func TestMigrateListsWhatItLeaves(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := forrst.Migrate(text, true)
	var got, want []string
	for _, p := range append(m.Left, m.Kept...) {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Kind))
	}
	// Each line to be listed bears its kind at its end.
	for _, kept := range []bool{false, true} {
		for i, line := range strings.Split(string(text), "\n") {
			if _, kind, ok := strings.Cut(line, "LIST "); ok && (kindOf(kind) == "data") == kept {
				want = append(want, fmt.Sprintf("%d %s", i+1, kindOf(kind)))
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if len(m.Changes) != 2 || !bytes.Contains(m.Text, []byte(`"retryable": true, "note": "LIST data"`)) {
		t.Errorf("changes %v, want those of one response\n%s", m.Changes, m.Text)
	}
	if again := forrst.Migrate(m.Text, true); len(again.Changes) > 0 || len(again.Left) != len(m.Left) {
		t.Errorf("a second run changes %v and leaves %v", again.Changes, again.Left)
	}
}

// kindOf returns the first word of what follows the mark of a line.
func kindOf(s string) string { return strings.Trim(strings.Fields(s)[0], `"`) }
