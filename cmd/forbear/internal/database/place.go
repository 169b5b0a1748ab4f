package database

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ErrPlace is in the chain of errors about where an SQLite file is. Their text
// names what else to choose.
var ErrPlace = errors.New("choose another with --database or FORBEAR_DATABASE: a file in a folder that this user can write to, or a postgres:// URL")

// private is the mode of a database, and of what SQLite keeps beside it: it holds
// payloads and responses.
const private fs.FileMode = 0o600

// What Note says of a file.
const (
	wasReadable = "other users of this machine could read the database file: its mode is now 0600"
	isReadable  = "other users of this machine can read the database file: run chmod o-rwx on it (its mode is unchanged, because an application uses it too)"
)

// place prepares the place of an SQLite file before it is opened. It makes a new one, which
// no umask makes wider than private, and narrows the mode of one that is wider, unless an
// application uses the file too. SQLite gives its other files the mode of this one.
//
// A file that is there is not opened: closing it would take away the locks that SQLite has
// on it elsewhere in this process.
func place(path string, others bool) (note string, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, private)
	switch {
	case err == nil:
		return "", errors.Join(f.Chmod(private), f.Close()) // a umask may have taken from it
	case errors.Is(err, fs.ErrExist) && others:
		if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
			note = isReadable
		}
		return note, nil
	case errors.Is(err, fs.ErrExist):
		return narrow(path)
	}
	return "", unusable(path, err)
}

// filePath returns the path of a name that stands for a file: not for a database
// in memory, nor for one that its own parameters open in another way.
func filePath(name string) (path string, ok bool) {
	path, more, _ := strings.Cut(name, "?")
	q, err := url.ParseQuery(more)
	if path == "" || path == ":memory:" || err != nil || q.Has("mode") || q.Has("vfs") {
		return "", false
	}
	return path, true
}

// narrow takes other users' rights from a database that is there, and from what is
// beside it.
func narrow(path string) (note string, err error) {
	for i, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		info, err := os.Stat(name)
		switch {
		case err != nil && i > 0:
			continue // nothing is beside it
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("database %s is a link to a missing file: %w", path, ErrPlace)
		case err != nil:
			return "", unusable(path, err)
		case info.IsDir() && i == 0:
			return "", fmt.Errorf("database %s is a folder: %w", path, ErrPlace)
		case info.Mode().Perm()&^private == 0 || runtime.GOOS == "windows": // where other things than the mode say who may read
			continue
		}
		err = os.Chmod(name, private)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue // another process has just closed the database
		}
		if err != nil {
			return note, fmt.Errorf("database %s: other users of this machine can read %s (mode %#o), and its mode cannot be changed (%w): run chmod 600 as its owner, or %w",
				path, name, info.Mode().Perm(), errors.Unwrap(err), ErrPlace)
		}
		note = wasReadable
	}
	return note, nil
}

// unusable explains why a database cannot be at path.
func unusable(path string, err error) error {
	folder := filepath.Dir(path)
	if abs, absErr := filepath.Abs(folder); absErr == nil {
		folder = abs
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("database %s: the folder %s does not exist: create it, or %w", path, folder, ErrPlace)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("database %s: this user cannot write to the folder %s: %w", path, folder, ErrPlace)
	}
	return fmt.Errorf("database %s: %w", path, err)
}

// opening explains an error of SQLite's, which needs to write into the folder too.
func opening(name string, err error) error {
	if path, ok := filePath(name); ok {
		f, probe := os.CreateTemp(filepath.Dir(path), ".forbear-*")
		if probe != nil {
			return unusable(path, probe)
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	return fmt.Errorf("database %s: %w", name, err)
}

// Exists refuses an SQLite file that is not there: opening it would make an empty
// one, and hide that its name was misspelt. A server says itself when it has no such
// database.
func Exists(name string) error {
	path, ok := filePath(name)
	if !ok || check(name) != nil || isServer(name) {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database %s does not exist: name the database of forbear serve with --database", path)
	}
	return nil
}
