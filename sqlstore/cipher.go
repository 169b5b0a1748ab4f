package sqlstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Encrypted are bodies, headers, envelopes and endpoints, with their secrets, and
// what receivers respond and errors quote. In the clear are the columns that statements compare: ids, endpoints, keys, states
// and times, and the reasons of dead letters.

// Cipher encrypts at rest: [WithCipher]. Both methods are safe for concurrent
// use.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// NewCipher returns AES-256-GCM under the first key; the others open what was
// sealed before a rotation: see [DB.Reencrypt]. A key is 32 bytes, named by an id of
// 1 to 31 visible characters.
func NewCipher(keys ...Key) (Cipher, error) {
	if len(keys) == 0 {
		return nil, errors.New("no encryption key")
	}
	c := &keyring{aeads: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if len(k.Secret) != 32 || !keyID(k.ID) || c.aeads[k.ID] != nil {
			return nil, fmt.Errorf("encryption key %.40q: want a unique id of up to %d visible characters and 32 bytes, got %d", k.ID, maxKeyID, len(k.Secret))
		}
		block, err := aes.NewCipher(k.Secret)
		if err != nil {
			return nil, err
		}
		if c.aeads[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
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
	aeads   map[string]cipher.AEAD // by the key's id
	current string                 // the id of the key that seals
}

// Seal implements [Cipher]: the length of the key's id, the id, the box. The
// first two are authenticated with it.
func (c *keyring) Seal(plain []byte) ([]byte, error) {
	// The key's id in front tells Open which key to take, after any rotation.
	head := append([]byte{byte(len(c.current))}, c.current...)
	return c.aeads[c.current].Seal(head, nil, plain, head), nil
}

// ErrKey says that something is encrypted under a key that is not at hand. The error
// that wraps it names the key.
var ErrKey = errors.New("encrypted under a key that is not among those given")

// Open implements [Cipher].
func (c *keyring) Open(sealed []byte) ([]byte, error) {
	id, ok := keyOf(sealed)
	if !ok {
		return nil, errors.New("not encrypted, or cut short")
	}
	aead := c.aeads[id]
	if aead == nil {
		return nil, fmt.Errorf("%w: key %q", ErrKey, id)
	}
	n := 1 + len(id)
	plain, err := aead.Open(nil, nil, sealed[n:], sealed[:n])
	if err != nil {
		return nil, fmt.Errorf("encrypted under key %q and changed since: %w", id, err)
	}
	return plain, nil
}

// maxKeyID bounds the ids of keys. What is sealed begins with a length of at most
// that, which no text does but one that begins with white space.
const maxKeyID = 31

// overhead is what AES-GCM adds: its nonce and its tag.
const overhead = 12 + 16

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

// seal and its three like encrypt when the database has a cipher, and pass the
// content on as it is otherwise.
func (db *DB) seal(plain []byte) ([]byte, error) {
	if db.cipher == nil {
		return plain, nil
	}
	return db.cipher.Seal(plain)
}

func (db *DB) unseal(sealed []byte) ([]byte, error) {
	id, named := keyOf(sealed)
	if db.cipher == nil {
		// What a key file of forbear's has sealed is never handed on as a payload. Ids of
		// other forms are not looked for: a payload may begin with anything.
		if named && fileID(id) {
			return nil, noKey(id)
		}
		return sealed, nil
	}
	if _, ours := db.cipher.(*keyring); ours {
		if !named {
			return sealed, nil // written before encryption was switched on
		}
	}
	return db.cipher.Open(sealed)
}

// noKey says what is missing where there is no key at all.
func noKey(id string) error { return fmt.Errorf("%w: key %q, and none is given", ErrKey, id) }

func (db *DB) sealText(plain []byte) (string, error) {
	if db.cipher == nil {
		return string(plain), nil
	}
	sealed, err := db.cipher.Seal(plain)
	return sealedText + base64.StdEncoding.EncodeToString(sealed), err
}

func (db *DB) unsealText(text string) ([]byte, error) {
	box, ok := strings.CutPrefix(text, sealedText)
	if !ok {
		return []byte(text), nil // written before encryption was switched on
	}
	if db.cipher == nil {
		return nil, noKey(keyOfText(text))
	}
	sealed, err := base64.StdEncoding.DecodeString(box)
	if err != nil {
		return nil, err
	}
	return db.cipher.Open(sealed)
}
