package sqlstore

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Encrypted are bodies, headers, envelopes and endpoints, with their secrets, and
// what receivers respond and errors quote. In the clear are the columns that statements compare: ids, endpoints, keys, states
// and times, and the reasons of dead letters.

// Cipher encrypts at rest: [WithCipher]. Both methods are safe for concurrent
// use. That of [NewCipher] binds what a database keeps to its table, column and row
// besides, so that who can write rows, and has no key, cannot have one shown in the
// place of another; another's does not.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// NewCipher returns AES-256-GCM under the first key; the others open what was
// sealed before a rotation: see [DB.Reencrypt]. A key is 32 bytes, named by an id of
// 1 to 31 visible characters. Each seal has a key of its own, derived from that: however
// many there are, no rotation is due for their number (see [master]).
func NewCipher(keys ...Key) (Cipher, error) {
	if len(keys) == 0 {
		return nil, errors.New("no encryption key")
	}
	c := &keyring{masters: map[string]*master{}}
	for _, k := range keys {
		if len(k.Secret) != 32 || !keyID(k.ID) || c.masters[k.ID] != nil {
			return nil, fmt.Errorf("encryption key %.40q: want a unique id of up to %d visible characters and 32 bytes, got %d", k.ID, maxKeyID, len(k.Secret))
		}
		var err error
		if c.masters[k.ID], err = newMaster(k.Secret); err != nil {
			return nil, err
		}
	}
	c.current = keys[0].ID
	return c, nil
}

// Key is one encryption key.
type Key struct {
	ID     string
	Secret []byte
}

// NewKey returns a random key.
func NewKey(id string) Key {
	k := Key{ID: id, Secret: make([]byte, 32)}
	_, _ = rand.Read(k.Secret) // never fails
	return k
}

// keyring is the cipher of several keys. What it seals names its key, so that
// keys can be rotated without rewriting what is stored.
type keyring struct {
	masters map[string]*master // by the key's id
	current string             // the id of the key that seals
}

// Seal implements [Cipher], for what has no place in a database: exports, and files.
func (c *keyring) Seal(plain []byte) ([]byte, error) { return c.SealAt("", plain) }

// Open implements [Cipher].
func (c *keyring) Open(sealed []byte) ([]byte, error) {
	plain, _, err := c.OpenAt("", sealed)
	return plain, err
}

// boundMark is behind the key's id in what is bound to its place. Earlier versions had a
// random nonce there: they find what is bound changed, and refuse it.
const boundMark = "\x00at\x02"

// SealAt seals for a place: the length of the key's id, the id, the mark, the box. What
// is in front, and the place, are authenticated with it. Package redisstore, which does
// not import this one, asks for it by an interface.
func (c *keyring) SealAt(place string, plain []byte) ([]byte, error) {
	// The key's id in front tells OpenAt which key to take, after any rotation.
	head := append([]byte{byte(len(c.current))}, c.current...)
	head = append(head, boundMark...)
	return c.masters[c.current].seal(head, plain, slices.Concat(head, []byte(place)))
}

// ErrKey says that something is encrypted under a key that is not at hand. The error
// that wraps it names the key.
var ErrKey = errors.New("encrypted under a key that this process lacks")

// OpenAt is the inverse of SealAt. It opens what earlier versions have sealed, too, and
// reports whether it was bound.
func (c *keyring) OpenAt(place string, sealed []byte) (plain []byte, bound bool, err error) {
	id, ok := keyOf(sealed)
	if !ok {
		return nil, false, errors.New("not encrypted, or truncated")
	}
	m := c.masters[id]
	if m == nil {
		return nil, false, fmt.Errorf("%w (key %q): give it with --encryption-key-file", ErrKey, id)
	}
	n := 1 + len(id)
	if bound = isBound(sealed); bound {
		n += len(boundMark)
		if plain, err = m.open(sealed[n:], slices.Concat(sealed[:n], []byte(place))); err == nil {
			return plain, true, nil
		}
	} else if plain, err = m.before.Open(nil, nil, sealed[n:], sealed[:n]); err == nil {
		return plain, false, nil
	}
	return nil, bound, fmt.Errorf("encrypted under key %q, but changed afterwards or moved here from another row: %w", id, err)
}

var errShort = errors.New("truncated")

// isBound reports whether what a keyring has sealed, or the beginning of it, is bound to
// its place.
func isBound(b []byte) bool {
	return len(b) > 0 && len(b) > int(b[0]) && bytes.HasPrefix(b[1+int(b[0]):], []byte(boundMark))
}

// maxKeyID bounds the ids of keys. What is sealed begins with a length of at most
// that, which no text does but one that begins with white space.
const maxKeyID = 31

const (
	// overhead is what AES-GCM adds: its nonce and its tag.
	overhead = 12 + 16
	// maxSealed is what sealing adds at most.
	maxSealed = 1 + maxKeyID + len(boundMark) + deriveBy + overhead
)

// keyID reports whether a key can have this id.
func keyID(id string) bool {
	return id != "" && len(id) <= maxKeyID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// fileID reports whether an id is of the form that the ids of key files have.
func fileID(id string) bool { return len(id) == 8 && strings.Trim(id, "0123456789abcdef") == "" }

// keyOf returns the id of the key that a keyring has sealed something under; false
// for what is not sealed.
func keyOf(b []byte) (id string, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0])+overhead {
		return "", false
	}
	id = string(b[1 : 1+int(b[0])])
	return id, keyID(id)
}

// sealedText marks a text that was encrypted.
const sealedText = "sealed:"

// ErrUnsealed refuses what is not encrypted, or not bound to its place, in a database all
// of which was: see [DB.Reencrypt].
var ErrUnsealed = errors.New("not encrypted for its row, in a database where everything is: it was not written by forbear, or by an earlier version or a process without the key")

// cell is where something sealed belongs: its table and column, and what identifies its
// row.
type cell string

// place returns the cell of a column, "table.column". Keys have no zero characters.
func place(column string, key ...string) cell {
	return cell(column + "\x00" + strings.Join(key, "\x00"))
}

// seal and its three like encrypt when the database has a cipher, and pass the
// content on as it is otherwise.
func (db *DB) seal(at cell, plain []byte) ([]byte, error) {
	switch c := db.cipher.(type) {
	case nil:
		if db.sealed.Load() && len(plain) > 0 {
			return nil, fmt.Errorf("%w: this database is encrypted: give its key with --encryption-key-file", ErrKey)
		}
		return plain, nil
	case *keyring:
		return c.SealAt(string(at), plain)
	default:
		return c.Seal(plain)
	}
}

func (db *DB) unseal(at cell, sealed []byte) ([]byte, error) {
	id, named := keyOf(sealed)
	c, ours := db.cipher.(*keyring)
	switch {
	case db.cipher == nil:
		// What a key file of forbear's has sealed is never handed on as a payload. Ids of
		// other forms are not looked for: a payload may begin with anything.
		if named && fileID(id) {
			return nil, noKey(id)
		}
		return sealed, nil
	case !ours:
		return db.cipher.Open(sealed)
	case !named && db.sealed.Load() && len(sealed) > 0:
		return nil, ErrUnsealed
	case !named:
		return sealed, nil // written before encryption was switched on
	}
	plain, bound, err := c.OpenAt(string(at), sealed)
	if err == nil && !bound && db.sealed.Load() {
		return nil, ErrUnsealed
	}
	return plain, err
}

// noKey says what is missing where there is no key at all.
func noKey(id string) error {
	return fmt.Errorf("%w (key %q): give it with --encryption-key-file", ErrKey, id)
}

func (db *DB) sealText(at cell, plain []byte) (string, error) {
	sealed, err := db.seal(at, plain)
	if db.cipher == nil || err != nil {
		return string(sealed), err
	}
	return sealedText + base64.StdEncoding.EncodeToString(sealed), nil
}

func (db *DB) unsealText(at cell, text string) ([]byte, error) {
	box, ok := strings.CutPrefix(text, sealedText)
	_, ours := db.cipher.(*keyring)
	switch {
	case !ok && ours && db.sealed.Load() && text != "":
		return nil, ErrUnsealed
	case !ok:
		return []byte(text), nil // written before encryption was switched on
	case db.cipher == nil:
		return nil, noKey(keyOfText(text))
	}
	sealed, err := base64.StdEncoding.DecodeString(box)
	if err != nil {
		return nil, err
	}
	if _, named := keyOf(sealed); ours && !named {
		return nil, errors.New("encrypted, but truncated")
	}
	return db.unseal(at, sealed)
}
