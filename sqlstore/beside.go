package sqlstore

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A step that earlier versions need not know says so in its first line, which names
// the step that they must know: "-- Works beside 0140". Such steps only add. Versions
// that know that one go on working when it is applied, and may be started again, so a
// fleet is upgraded process by process, and back. The line is kept in the database,
// since an earlier version does not have the later one's files.

// besideColumn is the step that adds the column for [Migration.Beside].
const besideColumn = 150

// beside reads which step the first line of a migration names; 0 when it names none.
func beside(text string) (step int) {
	line, _, _ := strings.Cut(text, "\n")
	if number, ok := strings.CutPrefix(line, "-- Works beside "); ok {
		step, _ = strconv.Atoi(number)
	}
	return step
}

// Breaking returns those missing steps of a list that a process cannot work beside
// which knows the steps that are applied, and no more. An empty database has no such
// processes.
func Breaking(list []Migration) (breaking []Migration) {
	applied := func(step int) bool {
		i := version(list, step)
		return i >= 0 && !list[i].Applied.IsZero()
	}
	if !slices.ContainsFunc(list, func(m Migration) bool { return !m.Applied.IsZero() }) {
		return nil
	}
	for _, m := range list {
		if m.Applied.IsZero() && !applied(m.Beside) {
			breaking = append(breaking, m)
		}
	}
	return breaking
}

// keepBeside writes which steps must be known beside those of a list, for earlier
// versions: their files do not have it.
func (t *tx) keepBeside(list []Migration) error {
	for _, m := range list {
		if m.Beside == 0 || m.Later {
			continue
		}
		if _, err := t.exec(`UPDATE forbear_migrations SET beside = ? WHERE version = ?`, m.Beside, m.Version); err != nil {
			return err
		}
	}
	return nil
}

// worksBeside appends the steps of a later forbear, or refuses them, in which case
// the error names those that this one would have to know.
func worksBeside(each asker, list, later []Migration) ([]Migration, error) {
	// What is later than the step that made the column was written with it. Before
	// that step there is no column to ask.
	if i := version(list, besideColumn); !list[i].Applied.IsZero() {
		err := each(func(r *sql.Rows) error {
			var step, known int
			if err := r.Scan(&step, &known); err != nil {
				return err
			}
			if i := version(later, step); i >= 0 {
				later[i].Beside = known
			}
			return nil
		}, `SELECT version, beside FROM forbear_migrations WHERE beside IS NOT NULL`)
		if err != nil {
			return nil, err
		}
	}
	var newer []string
	for _, m := range later {
		if version(list, m.Beside) < 0 {
			newer = append(newer, m.String())
		}
	}
	if len(newer) > 0 {
		return list, own(fmt.Errorf("%s: %w", strings.Join(newer, ", "), ErrNewer))
	}
	return append(list, later...), nil
}

// version returns the place of a step in a list, -1 when it is not there.
func version(list []Migration, step int) int {
	return slices.IndexFunc(list, func(m Migration) bool { return m.Version == step })
}
