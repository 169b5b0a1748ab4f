package database

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/sqlstore"
)

// Default is the database of a command that names none: a file in the working
// directory, so that a first try needs no server.
const Default = "forbear.db"

// Usage describes the flag --database of a command that opens SQLite or
// PostgreSQL and says nothing more of it.
const Usage = "an SQLite `file` or a postgres:// URL (also from FORBEAR_DATABASE)"

// Flag registers --database, which all commands that work on the database have.
// Its default is FORBEAR_DATABASE, so that serve and the commands beside it meet
// in one database without a flag each.
func Flag(f *flag.FlagSet, name *string, usage string) {
	f.StringVar(name, "database", cmp.Or(os.Getenv("FORBEAR_DATABASE"), Default), usage)
	f.Lookup("database").DefValue = Name(*name) // which --help shows
}

// minKey is the least length of a key file in bytes: AES-256 wants as many, and
// a shorter file is a password, which a digest does not make strong.
const minKey = 32

// KeyFiles are the files of encryption keys: the first encrypts, and all decrypt.
type KeyFiles struct {
	names []string
	given bool // by the flag, which replaces what the environment says
}

// KeyFlag registers --encryption-key-file. Its default is the variable
// FORBEAR_ENCRYPTION_KEY_FILE, where several files are separated as in PATH.
func KeyFlag(f *flag.FlagSet, k *KeyFiles, usage string) {
	k.names = filepath.SplitList(os.Getenv("FORBEAR_ENCRYPTION_KEY_FILE"))
	f.Var(k, "encryption-key-file", usage+" (also from FORBEAR_ENCRYPTION_KEY_FILE); may be repeated")
}

// String implements flag.Value.
func (k *KeyFiles) String() string { return strings.Join(k.names, string(filepath.ListSeparator)) }

// Set implements flag.Value: it adds a file.
func (k *KeyFiles) Set(name string) error {
	if !k.given {
		k.names, k.given = nil, true
	}
	k.names = append(k.names, name)
	return nil
}

// Cipher returns the cipher of the files, or nil without any.
func (k *KeyFiles) Cipher() (sqlstore.Cipher, error) { return Cipher(k.names...) }

// Cipher returns the cipher of key files, or nil without any.
func Cipher(files ...string) (sqlstore.Cipher, error) {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == "" })
	if len(files) == 0 {
		return nil, nil
	}
	keys := make([]sqlstore.Key, len(files))
	for i, name := range files {
		var err error
		if keys[i], err = readKey(name); err != nil {
			return nil, err
		}
		for _, other := range keys[:i] {
			if other.ID == keys[i].ID {
				return nil, fmt.Errorf("%s has the same key as another of the files: name each key once", name)
			}
		}
	}
	return sqlstore.NewCipher(keys...)
}

// readKey reads a key file. It holds any 32 bytes or more, and the key is a digest of
// all of them. Its id, which is stored beside what is sealed, is a digest of the key, so
// that the id gives nothing of it away.
func readKey(name string) (k sqlstore.Key, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return k, err
	}
	if len(b) < minKey {
		return k, fmt.Errorf("%s: want at least %d bytes of key, for example from openssl rand -out key 32", name, minKey)
	}
	key := sha256.Sum256(b)
	id := sha256.Sum256(key[:])
	return sqlstore.Key{ID: fmt.Sprintf("%x", id[:4]), Secret: key[:]}, nil
}
