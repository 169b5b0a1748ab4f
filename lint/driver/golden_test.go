package driver

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
)

// golden is a case of an archive: files, and after FILE.golden what FILE becomes. Most
// of a case's time is that of the go command, so cases share a module, in which each
// has a folder.
type golden struct {
	name, path string
	archive    *txtar.Archive
	mod        *modfile.File
}

// goldens reads the cases of a folder.
func goldens(t *testing.T, folder string) (cases []*golden) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("got %v, %v; want the cases", paths, err)
	}
	for _, path := range paths {
		c := &golden{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path}
		if c.archive, err = txtar.ParseFile(path); err != nil {
			t.Fatal(err)
		}
		if c.mod, err = modfile.Parse(path, []byte(c.file("go.mod")), nil); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func (c *golden) file(name string) string {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// moved returns text of the case as it reads in the case's folder of the module; back
// undoes that.
func (c *golden) moved(text string) string {
	return strings.ReplaceAll(text, "example.com/m/", "example.com/m/"+c.name+"/")
}

func (c *golden) back(text string) string {
	return strings.ReplaceAll(text, "example.com/m/"+c.name+"/", "example.com/m/")
}

// want returns what each file becomes, by its path in the module.
func (c *golden) want() map[string]string {
	files := map[string]string{}
	for _, f := range c.archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".golden"); ok {
			files[c.name+"/"+base] = c.moved(string(f.Data))
		}
	}
	return files
}

// beside reports whether two cases may be in one module: they want the same Go and
// replace no module twice.
func (c *golden) beside(other *golden) bool {
	for _, mine := range c.mod.Replace {
		for _, theirs := range other.mod.Replace {
			if mine.Old.Path == theirs.Old.Path {
				return false
			}
		}
	}
	return c.mod.Go.Version == other.mod.Go.Version
}

// together divides cases into those that share a module.
func together(cases []*golden) (modules [][]*golden) {
next:
	for _, c := range cases {
		for i, m := range modules {
			fits := true
			for _, other := range m {
				fits = fits && c.beside(other)
			}
			if fits {
				modules[i] = append(m, c)
				continue next
			}
		}
		modules = append(modules, []*golden{c})
	}
	return modules
}

// shared writes the module of some cases and returns its folder.
func shared(t *testing.T, cases []*golden) string {
	t.Helper()
	mod, files := &modfile.File{}, map[string]string{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(mod.AddModuleStmt("example.com/m"))
	must(mod.AddGoStmt(cases[0].mod.Go.Version))
	for _, c := range cases {
		for _, r := range c.mod.Require {
			must(mod.AddRequire(r.Mod.Path, r.Mod.Version))
		}
		for _, r := range c.mod.Replace {
			must(mod.AddReplace(r.Old.Path, r.Old.Version, "./"+c.name+"/"+strings.TrimPrefix(r.New.Path, "./"), ""))
		}
		for _, f := range c.archive.Files {
			if f.Name != "go.mod" && !strings.HasSuffix(f.Name, ".golden") {
				files[c.name+"/"+f.Name] = c.moved(string(f.Data))
			}
		}
	}
	text, err := mod.Format()
	must(err)
	files["go.mod"] = string(text)
	return module(t, files)
}
