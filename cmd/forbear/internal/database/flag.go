package database

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"

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
}

// minKey is the least length of a key file in bytes: AES-256 wants as many, and
// a shorter file is a password, which a digest does not make strong.
const minKey = 32

// Cipher returns the cipher of a key file, or nil without one. The file holds
// any 32 bytes or more, and the key is a digest of all of them. Its id, which is
// stored beside what is sealed, is a digest of the key, so that the id tells
// nothing of it.
func Cipher(file string) (sqlstore.Cipher, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < minKey {
		return nil, fmt.Errorf("%s: a key has at least %d bytes", file, minKey)
	}
	key := sha256.Sum256(b)
	id := sha256.Sum256(key[:])
	return sqlstore.NewCipher(sqlstore.Key{ID: fmt.Sprintf("%x", id[:4]), Secret: key[:]})
}
