package sqlstore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestStatementsAreTranslated(t *testing.T) {
	const clock = "(extract(epoch from clock_timestamp())*1000000)::bigint+"
	for _, tt := range []struct{ text, sqlite, postgres string }{
		{"SELECT 1", "SELECT 1", "SELECT 1"},
		{"a = ? AND b IN (?, ?)", "a = ? AND b IN (?, ?)", "a = $1 AND b IN ($2, $3)"},
		{"? {t} ?", "? ? ?", "$1 (" + clock + "$2::bigint) $3"},
		{"due <= {now} AND ?", "due <= ? AND ?", "due <= (SELECT " + clock + "$1::bigint) AND $2"},
		{"LIMIT ? {skip locked}", "LIMIT ? ", "LIMIT $1 FOR UPDATE SKIP LOCKED"},
		{"? {lock delivery}", "? ", "$1 FOR UPDATE OF d"},
		{"IN ({ids})", "IN (SELECT value FROM json_each(?))", "IN (SELECT value::bigint FROM json_array_elements_text($1::json))"},
		{"{t} FROM {texts} e", "? FROM json_each(?) e", "(" + clock + "$1::bigint) FROM json_array_elements_text($2::json) e"},
		{"FROM {keys}", "FROM (SELECT value ->> 'e' AS e, value ->> 'k' AS k FROM json_each(?)) x", "FROM json_to_recordset($1::json) AS x(e text, k text)"},
	} {
		if got := (sqlite{}).sql(tt.text); got != tt.sqlite {
			t.Errorf("%q is %q on SQLite, want %q", tt.text, got, tt.sqlite)
		}
		if got := (postgres{}).sql(tt.text); got != tt.postgres {
			t.Errorf("%q is %q on PostgreSQL, want %q", tt.text, got, tt.postgres)
		}
	}
}

// inBraces is what looks like a word of the vocabulary.
var inBraces = regexp.MustCompile(`\{[a-z]+( [a-z]+)?\}`)

// A word that no dialect knows would reach the database as it is.
func TestAllWordsAreKnown(t *testing.T) {
	seen := 0
	check := func(where, text string) {
		for _, word := range inBraces.FindAllString(text, -1) {
			if word == "{sqlite}" || word == "{postgres}" {
				continue // of a statement for one alone
			}
			seen++
			for _, d := range []dialect{sqlite{}, postgres{}} {
				if strings.Contains(d.sql(word), "{") {
					t.Errorf("%s: %s is no word on %s", where, word, d.name())
				}
			}
		}
	}
	for name, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.HasPrefix(lit.Value, "`") {
				check(name, lit.Value)
			}
			return true
		})
	}
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		check(m.Name, m.text)
	}
	if seen < 50 {
		t.Errorf("only %d words were found", seen)
	}
}

// A question for the database's name anywhere else would be a third place to
// look for what differs.
func TestOnlyTheirFilesNameTheDialects(t *testing.T) {
	for name, f := range sources(t) {
		if strings.HasSuffix(name, "_sqlite.go") || strings.HasSuffix(name, "_postgres.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "sqlite" || id.Name == "postgres") {
				t.Errorf("%s names %s: give [dialect] a method", name, id.Name)
			}
			return true
		})
	}
}

// sources parses the package without its tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	return files
}

// PostgreSQL's clock counts for all processes, SQLite's is the process's.
func TestArguments(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_000_000)
	for _, tt := range []struct {
		d    dialect
		want int64
	}{{sqlite{}, 1_700_000_002_500_000}, {postgres{}, 2_500_000}} {
		db := &DB{d: tt.d, now: func() time.Time { return now }}
		got, err := db.args([]any{after(2500 * time.Millisecond), now, time.Time{}, held, "text", nil, asJSON{[]int{1, 2}}})
		want := []any{tt.want, int64(1_700_000_000_000_000), nil, int64(4), "text", nil, "[1,2]"}
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: argument %d is %v, want %v", tt.d.name(), i, got[i], want[i])
			}
		}
		if _, err := db.args([]any{asJSON{func() {}}}); err == nil {
			t.Error("what has no JSON was sent")
		}
	}
}

func TestTimesComeBack(t *testing.T) {
	if !at(0).IsZero() || micros(time.Time{}) != nil {
		t.Error("no time became one")
	}
	now := time.Now().Truncate(time.Microsecond)
	if got := at(micros(now).(int64)); !got.Equal(now) || got.Location() != time.UTC {
		t.Errorf("got %v, want %v in UTC", got, now)
	}
}

// The numbers are on disk: a change would give old rows another state.
func TestStatesAreNumbers(t *testing.T) {
	for state, number := range map[rowState]int64{waiting: 0, leased: 1, delivered: 2, dead: 3, held: 4, canceled: 5} {
		var back rowState
		if err := back.Scan(number); err != nil || state.number() != number || back != state {
			t.Errorf("state %s: %d, and back %q, %v; want %d", stateNames[state], state.number(), back, err, number)
		}
	}
	if err := new(rowState).Scan("waiting"); err == nil {
		t.Error("a state that is no number was read")
	}
	if got, want := stateUnfinished, "state IN (0, 1, 4)"; got != want {
		t.Errorf("unfinished is %q, and the index on keys has %q", got, want)
	}
	if got, want := recordTaken, "state IN (1, 4)"; got != want {
		t.Errorf("taken is %q, and the index on held records has %q", got, want)
	}
}
