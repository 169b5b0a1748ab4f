// Command size says what makes forbear as large as it is: bytes by module, as a table
// in Markdown. It builds the program twice for linux/amd64, once as it is given out
// and once with the symbols that the table is read from.
package main

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

func main() {
	log.SetFlags(0)
	root := flag.String("root", "../..", "the `folder` of the source")
	rows := flag.Int("rows", 24, "how many modules to show")
	flag.Parse()
	if err := run(os.Stdout, *root, *rows); err != nil {
		log.Fatalf("size: %v", err)
	}
}

// platform is the one whose size is looked at.
var platform = build.Platform{OS: "linux", Arch: "amd64"}

func run(w io.Writer, root string, rows int) error {
	dir, err := os.MkdirTemp("", "forbear-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	size, err := given(root, dir)
	if err != nil {
		return err
	}
	whole := filepath.Join(dir, "whole")
	if err := build.Binary(root, whole, "v0.0.0-size", platform, false); err != nil {
		return err
	}
	return table(w, whole, size, rows)
}

// given returns the size of the program as it is given out.
func given(root, dir string) (int64, error) {
	path := filepath.Join(dir, "given")
	if err := build.Binary(root, path, "v0.0.0-size", platform, true); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// use is what one module takes: its code, and its data on disk.
type use struct{ code, data uint64 }

// table writes the sections of the program, and the largest modules.
func table(w io.Writer, path string, size int64, rows int) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(w, "| section | bytes | what it is |\n|---|--:|---|\n| all | %d | the program as it is given out |\n", size)
	for _, s := range [][2]string{
		{".text", "code"},
		{".gopclntab", "where each instruction comes from, for stack traces and the garbage collector: grows with the code"},
		{".rodata", "types, texts, tables"},
		{".noptrdata", "data without pointers: embedded files, tables"},
		{".data", "data with pointers"},
	} {
		if sec := f.Section(s[0]); sec != nil {
			fmt.Fprintf(w, "| `%s` | %d | %s |\n", s[0], sec.Size, s[1])
		}
	}
	uses, err := byModule(f, path)
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(uses), func(a, b string) int {
		return cmp.Or(cmp.Compare(uses[b].code+uses[b].data, uses[a].code+uses[a].data), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "\n| module | code | data |\n|---|--:|--:|\n")
	var rest use
	for i, n := range names {
		if i >= rows {
			rest.code, rest.data = rest.code+uses[n].code, rest.data+uses[n].data
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d |\n", n, uses[n].code, uses[n].data)
	}
	_, err = fmt.Fprintf(w, "| %d others | %d | %d |\n", max(len(names)-rows, 0), rest.code, rest.data)
	return err
}

// byModule adds up the symbols of each module.
func byModule(f *elf.File, path string) (map[string]use, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	modules := []string{info.Main.Path}
	for _, d := range info.Deps {
		modules = append(modules, d.Path)
	}
	// The longest prefix is the module.
	slices.SortFunc(modules, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	uses := map[string]use{}
	for _, s := range symbols {
		if int(s.Section) >= len(f.Sections) || f.Sections[s.Section].Type == elf.SHT_NOBITS {
			continue // not on disk
		}
		name := moduleOf(s.Name, modules)
		u := uses[name]
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			u.code += s.Size
		} else {
			u.data += s.Size
		}
		uses[name] = u
	}
	return uses, nil
}

// moduleOf returns the module of a symbol. What the linker makes for all, such as types
// and their tables, has no package in its name.
func moduleOf(symbol string, modules []string) string {
	// The dots in the last part of a path are written otherwise: gopkg.in/yaml%2ev3.
	symbol = strings.ReplaceAll(strings.TrimPrefix(symbol, "type:.eq."), "%2e", ".")
	for _, m := range modules {
		if rest, ok := strings.CutPrefix(symbol, m); ok && (rest == "" || rest[0] == '/' || rest[0] == '.') {
			return m
		}
	}
	if i := strings.IndexByte(symbol, '['); i >= 0 { // a generic function of the standard library
		symbol = symbol[:i]
	}
	if strings.HasPrefix(symbol, "go:") || strings.HasPrefix(symbol, "type:") {
		return "made by the linker for all"
	}
	return "Go's standard library"
}
