package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/forbear-go/forbear/tools/release/internal/cut"
	"github.com/forbear-go/forbear/tools/release/internal/modcache"
	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// TestRelease releases the checkout twice in a clone, and uses both from a proxy that
// knows nothing but the tags.
func TestRelease(t *testing.T) {
	ctx := t.Context()
	repository := scratch(t)
	first, second := next(t, repository)
	cache := t.TempDir() // of modules, which users keep

	note(t, repository, "- A first thing.")
	released(t, repository, first, false)
	env := published(t, repository, cache, first)
	if kept := git(t, repository, "ls-files", "cmd/forbear/testdata/releases/"+first); len(strings.Fields(kept)) != 4 {
		t.Errorf("the databases of %s: kept %q", first, kept)
	}
	bin := t.TempDir()
	must(t, run.Quiet(ctx, bin, append(env, "GOBIN="+bin), "go", "install", workspace.Prefix+"/cmd/forbear@"+first))
	if out, err := run.Output(ctx, bin, nil, filepath.Join(bin, "forbear"), "version"); err != nil || !strings.HasPrefix(out, "forbear "+first+" (") {
		t.Errorf("forbear version: got %q, %v", out, err)
	}
	if out, err := run.Output(ctx, bin, nil, filepath.Join(bin, "forbear"), "explain", "--status", "503"); err != nil || !strings.HasPrefix(out, "retry after 0s to 1s") {
		t.Errorf("forbear explain: got %q, %v", out, err)
	}
	programs := map[string]string{}
	for _, m := range modules(t, repository) {
		if m.Dir != "cmd/forbear" {
			programs[m.Path] = user(t, env, m, first)
		}
	}

	refuses(t, repository, first, quick, "already")
	refuses(t, repository, second, quick, "says nothing")

	note(t, repository, "- A second thing.")
	refused(t, repository, second)
	rehearsed(t, repository, second)
	released(t, repository, second, true)
	env = published(t, repository, cache, second)
	path := workspace.Prefix + "/promretry"
	must(t, run.Quiet(ctx, programs[path], env, "go", "get", path+"@"+second))
	if out, err := run.Output(ctx, programs[path], env, "go", "list", "-m", workspace.Prefix); err != nil || strings.TrimSpace(out) != workspace.Prefix+" "+second {
		t.Errorf("after an upgrade of promretry: got %q, %v", out, err)
	}
	must(t, run.Quiet(ctx, programs[path], env, "go", "build", "."))
}

// scratch clones the checkout, with the changes to files that git knows.
func scratch(t *testing.T) string {
	t.Helper()
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "release test")
		t.Setenv("GIT_"+who+"_EMAIL", "release@example.com")
	}
	root := git(t, ".", "rev-parse", "--show-toplevel")
	shallow := git(t, root, "rev-parse", "--is-shallow-repository") == "true" // as build machines have it
	commit := git(t, root, "stash", "create")
	if commit == "" || shallow {
		commit = "HEAD"
	}
	commit = git(t, root, "rev-parse", commit)
	dir := filepath.Join(t.TempDir(), "repository")
	git(t, root, "clone", "--quiet", "--shared", "--no-checkout", ".", dir)
	if shallow { // all of its history is one commit then
		commit = git(t, dir, "commit-tree", "-m", "the checkout", commit+"^{tree}")
		must(t, os.Remove(filepath.Join(dir, ".git", "shallow")))
	}
	git(t, dir, "checkout", "--quiet", "-B", "main", commit)
	return dir
}

// next returns the versions to rehearse: the minor one after the last, and a patch.
func next(t *testing.T, repository string) (minor, patch string) {
	t.Helper()
	last := "v0.0.0"
	for tag := range strings.FieldsSeq(git(t, repository, "tag", "--list")) {
		if semver.IsValid(tag) && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	var major, n int
	if _, err := fmt.Sscanf(last, "v%d.%d.", &major, &n); err != nil {
		t.Fatalf("%s: %v", last, err)
	}
	return fmt.Sprintf("v%d.%d.0", major, n+1), fmt.Sprintf("v%d.%d.1", major, n+1)
}

func note(t *testing.T, repository, line string) {
	t.Helper()
	edit(t, repository, "CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n"+line+"\n")
}

// edit replaces a part of a file, and commits.
func edit(t *testing.T, repository, name, before, after string) {
	t.Helper()
	path := filepath.Join(repository, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q", name, before)
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(string(text), before, after, 1)), 0o644))
	git(t, repository, "commit", "--quiet", "--all", "--message", "edit "+name)
}

// quick leaves out what one release in this test has to do, and not each.
var quick = cut.Options{Quick: true, Believe: true, Unused: true, Forgetful: true}

// refuses tries a release that is to be refused, and to leave nothing.
func refuses(t *testing.T, repository, version string, o cut.Options, why ...string) {
	t.Helper()
	before := state(t, repository)
	o.Log = t.Output()
	err := cut.Release(t.Context(), repository, version, o)
	for _, why := range why {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("a release of %s: got %v, want %q", version, err, why)
		}
	}
	if after := state(t, repository); after != before {
		t.Errorf("%s was refused, and left\n%s\nwhere there was\n%s", version, after, before)
	}
}

// state is all that a release may change.
func state(t *testing.T, repository string) string {
	t.Helper()
	return git(t, repository, "status", "--porcelain", "--branch") + git(t, repository, "for-each-ref")
}

// refused tries what no patch release may do: lose something that is exported, need what
// no release has, or come from another branch.
func refused(t *testing.T, repository, version string) {
	t.Helper()
	compared := quick
	compared.Believe = false
	edit(t, repository, "promretry/observer.go", "func WithService(", "func withService(")
	refuses(t, repository, version, compared, "github.com/forbear-go/forbear/promretry: WithService: removed")
	git(t, repository, "reset", "--quiet", "--hard", "HEAD~1")

	idle := []string{"otelretry", "promretry"} // each has a requirement that nothing needs
	for _, dir := range idle {
		edit(t, repository, dir+"/go.mod", "go 1.26.0\n", "go 1.26.0\n\nrequire github.com/forbear-go/forbear/client v0.0.0\n")
	}
	refuses(t, repository, version, quick, "clone/otelretry: ", "clone/promretry: ")
	git(t, repository, "reset", "--quiet", "--hard", "HEAD~2")

	git(t, repository, "checkout", "--quiet", "-b", "other")
	refuses(t, repository, version, quick, "on main")
	git(t, repository, "checkout", "--quiet", "main")
}

// rehearsed does what a release does, and finds nothing changed.
func rehearsed(t *testing.T, repository, version string) {
	t.Helper()
	before := state(t, repository)
	o := quick
	o.Rehearse, o.Log = true, t.Output()
	must(t, cut.Release(t.Context(), repository, version, o))
	if state(t, repository) != before {
		t.Fatalf("a rehearsal of %s changed the repository", version)
	}
}

// released makes a release and looks at what it has left in the repository.
func released(t *testing.T, repository, version string, unused bool) {
	t.Helper()
	o := cut.Options{Quick: true, Believe: true, Unused: unused, Forgetful: unused, Log: t.Output()}
	before := git(t, repository, "rev-parse", "HEAD")
	must(t, cut.Release(t.Context(), repository, version, o))
	if parent := git(t, repository, "rev-parse", "HEAD~1"); parent != before {
		t.Errorf("%s is not one commit", version)
	}
	if changed := git(t, repository, "status", "--porcelain"); changed != "" {
		t.Errorf("%s leaves changes:\n%s", version, changed)
	}
	for _, m := range modules(t, repository) {
		if at := git(t, repository, "rev-parse", m.Tag(version)+"^{commit}"); at != git(t, repository, "rev-parse", "HEAD") {
			t.Errorf("%s is at %s", m.Tag(version), at)
		}
	}
	notes, err := os.ReadFile(filepath.Join(repository, "bin", "release", "notes.md"))
	if err != nil || !strings.Contains(string(notes), "thing.\n") || !strings.Contains(string(notes), "cmd/forbear@"+version) {
		t.Errorf("notes of %s: %v\n%s", version, err, notes)
	}
}

// published returns the environment of users of a version, who keep what they had.
func published(t *testing.T, repository, cache, version string) run.Env {
	t.Helper()
	c, err := modcache.Make(t.Context(), repository, cache, modules(t, repository), version)
	must(t, err)
	env, err := c.Env(t.Context(), "-mod=mod")
	must(t, err)
	return env
}

// user gets a module into an empty one, and runs a small program that uses it.
func user(t *testing.T, env run.Env, m workspace.Module, version string) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join("testdata", "use", filepath.Base(m.Path)+".go"))
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), program, 0o644))
	must(t, run.Quiet(t.Context(), dir, env, "go", "mod", "init", "example.com/use"))
	must(t, run.Quiet(t.Context(), dir, env, "go", "get", m.Path+"@"+version))
	if out, err := run.Output(t.Context(), dir, env, "go", "run", "."); err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("a program that uses %s@%s: %q, %v", m.Path, version, out, err)
	}
	return dir
}

func modules(t *testing.T, root string) []workspace.Module {
	t.Helper()
	w, err := workspace.Read(root)
	must(t, err)
	return w.Released()
}
