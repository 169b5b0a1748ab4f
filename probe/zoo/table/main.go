// Command table writes what forbear probe saw of the clients of the zoo into the
// documentation: a table into docs/clients.md and its sums into docs/compare.md, between
// marks, and a page for each client below docs/clients.
//
//	go run ./probe/zoo/table probe/zoo/.cache/reports/*.json
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := update(".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// update writes the pages of a repository from reports.
func update(root string, files []string) error {
	z, err := readZoo(root)
	if err != nil {
		return err
	}
	list, err := z.read(files)
	if err != nil {
		return err
	}
	docs := filepath.Join(root, "docs")
	return cmp.Or(
		insert(filepath.Join(docs, "clients.md"), table(list)),
		insert(filepath.Join(docs, "compare.md"), sums(list)),
		writePages(filepath.Join(docs, "clients"), list),
	)
}

const begin, end = "<!-- begin: make zoo -->\n", "<!-- end: make zoo -->\n"

// insert puts text between the marks of a page.
func insert(page, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(old, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for it, between %q and %q", page, begin, end)
	}
	return os.WriteFile(page, slices.Concat(head, []byte(begin), []byte(text), []byte(end), tail), 0o644)
}
