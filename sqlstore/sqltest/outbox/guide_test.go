package outbox

import (
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// blocks returns a guide's blocks of a language, in their order.
func blocks(t *testing.T, guide, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/" + guide + ".md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```"+language+"\n")
	for _, part := range parts[1:] {
		block, _, _ := strings.Cut(part, "```\n")
		list = append(list, block)
	}
	return list
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// trigger calls the function, as the guide says that a trigger may.
const trigger = `CREATE FUNCTION order_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM forbear_send('order.created', to_jsonb(NEW), endpoint => 'acme', message_id => 'order-' || NEW.id || '-created');
  RETURN NEW;
END $$;
CREATE TRIGGER order_created AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION order_created()`

// The guide's statements and programs in other languages do what it says, for a role with
// the rights that it names.
func TestOtherLanguages(t *testing.T) {
	database := pgtest.Database(t)
	a := deliver(t, database)
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sqls := blocks(t, "outbox-postgresql", "sql")
	if len(sqls) != 2 {
		t.Fatalf("the guide has %d blocks of SQL", len(sqls))
	}
	grants, calls := sqls[0], strings.SplitAfter(sqls[1], ";\n")[:2]
	execute(t, db, `CREATE TABLE orders (id integer PRIMARY KEY, shipped integer NOT NULL)`,
		`GRANT ALL ON orders TO shop`, grants, trigger, `INSERT INTO orders VALUES (20, 0)`, `DROP TRIGGER order_created ON orders`,
		`INSERT INTO orders VALUES (21, 0), (22, 0), (23, 0)`)
	want := map[string]string{"order-20-created": `{"id": 20, "shipped": 0}`}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("shop")
	shop, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	var made string
	if err := shop.QueryRowContext(t.Context(), calls[0]).Scan(&made); err != nil {
		t.Fatal(err)
	}
	want[made] = `{"order":17}`
	execute(t, shop, strings.ReplaceAll(calls[1], "10 minutes", "0 minutes"))
	want["order-18-shipped"] = `{"order": 18}`

	env := append(os.Environ(), "DATABASE_URL="+u.String(), "JDBC_URL=jdbc:postgresql://"+u.Host+u.Path+"?user=shop&sslmode=disable")
	for _, l := range languages {
		name, args := l.command()
		if name == "" {
			t.Logf("NOT RUN: the guide's program in %s: %s", l.name, l.install)
			if l.guide && os.Getenv("CI") == "true" {
				t.Fail()
			}
			continue
		}
		file := "../../../examples/outbox/" + l.file
		if l.guide {
			file = filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(file, []byte(blocks(t, "outbox-postgresql", "python")[0]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), name, append(args, file)...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", l.name, err, out)
		}
		want["order-"+l.order+"-shipped"] = l.body
	}
	a.want(t, want)
	var shipped int
	if err := db.QueryRowContext(t.Context(), `SELECT sum(shipped) FROM orders`).Scan(&shipped); err != nil || shipped != len(want)-3 {
		t.Errorf("%d orders are shipped, %v", shipped, err)
	}
}

// language is one in which the guide has or names a program, which needs a driver.
type language struct {
	name, file, order, body, install string
	guide                            bool // the guide has it, and .ci/deps installs the driver
	command                          func() (name string, args []string)
}

var languages = []language{
	{"python", "ship.py", "21", `{"order": 21, "note": "a \"quoted\" word"}`, "sudo apt-get install python3-psycopg", true, func() (string, []string) {
		// The first python3 may be another one than Debian's.
		for _, name := range []string{"python3", "/usr/bin/python3"} {
			if exec.Command(name, "-c", "import psycopg").Run() == nil {
				return name, nil
			}
		}
		return "", nil
	}},
	{"js", "ship.js", "22", `{"order":22,"note":"a \"quoted\" word"}`, "npm install pg, and NODE_PATH where it is", false, func() (string, []string) {
		if exec.Command("node", "-e", "require('pg')").Run() != nil {
			return "", nil
		}
		return "node", nil
	}},
	{"java", "Ship.java", "23", `{"order":23,"note":"a \"quoted\" word"}`, "sudo apt-get install default-jdk-headless libpostgresql-jdbc-java", false, func() (string, []string) {
		const driver = "/usr/share/java/postgresql.jar"
		if _, err := os.Stat(driver); err != nil || exec.Command("javac", "-version").Run() != nil {
			return "", nil
		}
		return "java", []string{"-cp", driver}
	}},
}

// The guide's trigger on SQLite sends a message for each order that is inserted, and
// none for one that is rolled back.
func TestTriggerOnSQLite(t *testing.T) {
	database := filepath.Join(t.TempDir(), "shop.db")
	a := deliver(t, database)
	name, _ := sqlstore.SQLiteNames(database)
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	execute(t, db, `CREATE TABLE orders (id INTEGER PRIMARY KEY, shipped INTEGER NOT NULL)`, blocks(t, "outbox", "sql")[0],
		`BEGIN`, `INSERT INTO orders VALUES (30, 0)`, `ROLLBACK`, `INSERT INTO orders VALUES (31, 0)`)
	a.want(t, map[string]string{"order-31-created": `{"order":31}`})
}

// The guide's programs on SQLite ship an order and send its message, and neither where
// there is no such order.
func TestSQLitePrograms(t *testing.T) {
	dir := t.TempDir()
	a := deliver(t, filepath.Join(dir, "shop.db"))
	want := map[string]string{}
	for _, l := range []struct{ language, program, file, order, body string }{
		{"python", "python3", "ship.py", "11", `{"order": 11}`},
		{"js", "node", "ship.mjs", "12", `{"order":12}`},
	} {
		if l.program == "node" && exec.CommandContext(t.Context(), "node", "-e", "require('node:sqlite')").Run() != nil {
			t.Log("NOT RUN: the guide's program in Node.js: it wants 22.13 or later")
			continue
		}
		file := filepath.Join(dir, l.file)
		if err := os.WriteFile(file, []byte(blocks(t, "outbox", l.language)[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		for order, succeeds := range map[string]bool{l.order: true, "99": false} {
			cmd := exec.CommandContext(t.Context(), l.program, file, order)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); (err == nil) != succeeds || strings.Contains(string(out), "no order 99") == succeeds {
				t.Fatalf("%s %s: %v\n%s", l.file, order, err, out)
			}
		}
		want["order-"+l.order+"-shipped"] = l.body
	}
	a.want(t, want)
}
