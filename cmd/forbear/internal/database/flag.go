package database

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"

	"github.com/forbear-go/forbear/sqlstore"
)

// Flag is shared by all commands that work on the database.
func Flag(f *flag.FlagSet) *string {
	return f.String("database", cmp.Or(os.Getenv("FORBEAR_DATABASE"), Default), "an SQLite `file` or a postgres:// URL (also from FORBEAR_DATABASE)")
}

// ReadKeys reads the encryption key: any 32 bytes or more, of which a digest is
// the key. Without a file there is none.
func ReadKeys(file string) ([]sqlstore.Key, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < 32 {
		return nil, fmt.Errorf("%s: a key has at least 32 bytes", file)
	}
	sum := sha256.Sum256(b)
	id := sha256.Sum256(sum[:])
	return []sqlstore.Key{{ID: fmt.Sprintf("%x", id[:4]), Secret: sum[:]}}, nil
}
