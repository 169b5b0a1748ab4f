package gateway

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

// VerifyKey is a public key that checks tokens: an *rsa.PublicKey of at least
// 2,048 bits (RS256), an *ecdsa.PublicKey of P-256 (ES256) or an
// ed25519.PublicKey (EdDSA). ID is the kid of tokens that it is for; empty: of
// any.
type VerifyKey struct {
	ID  string
	Key crypto.PublicKey
}

// The bounds of a set of keys. RSA keys below 2,048 bits are not allowed for JWTs
// (RFC 7518 section 3.3).
const (
	maxKeyFile = 1 << 20 // bytes
	maxKeys    = 64
	minRSA     = 2048 // bits
)

// ReadKeys reads public keys: one or more PEM blocks, or a JSON Web Key Set (RFC
// 7517). Private keys are refused, since a gateway has no use for them. Errors
// name the key by its number and hold nothing of it.
func ReadKeys(data []byte) ([]VerifyKey, error) {
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("a set of keys is larger than %d bytes", maxKeyFile)
	}
	read := readPEM
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		read = readJWKS
	}
	keys, err := read(data)
	switch {
	case err != nil:
		return nil, err
	case len(keys) == 0:
		return nil, errors.New("it holds no public key: want PEM blocks or a JSON Web Key Set")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("%d keys: want at most %d", len(keys), maxKeys)
	}
	return keys, nil
}

// readPEM takes public keys and those of certificates. What is between the blocks
// is ignored, as RFC 7468 asks.
func readPEM(data []byte) (keys []VerifyKey, _ error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		n := len(keys) + 1
		var key any
		var err error
		switch block.Type {
		case "PUBLIC KEY":
			key, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			key, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = c.PublicKey
			}
		default:
			return nil, fmt.Errorf("key %d is a %s: want a public key", n, block.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("key %d cannot be read", n)
		}
		if err := usable(key); err != nil {
			return nil, fmt.Errorf("key %d: %w", n, err)
		}
		keys = append(keys, VerifyKey{Key: key})
	}
	return keys, nil
}

// jwk is one key of a set, as far as it is read.
type jwk struct {
	Kty, Kid, Use, Crv string
	N, E, X, Y         string
	D, K               string // private parts
}

// readJWKS takes the keys that are for signatures. A set that also has keys for
// encryption is common.
func readJWKS(data []byte) (keys []VerifyKey, _ error) {
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("not a JSON Web Key Set")
	}
	for i, j := range set.Keys {
		if j.Use != "" && j.Use != "sig" {
			continue // for encryption
		}
		key, err := j.public()
		if err == nil {
			err = usable(key)
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys = append(keys, VerifyKey{j.Kid, key})
	}
	return keys, nil
}

// errJWK says that a key is malformed, and not how: the text would quote it.
var errJWK = errors.New("cannot be read")

// public makes the key of its numbers (RFC 7518 section 6). Numbers are bounded
// before they are used: arithmetic on a huge one would hold up the start.
func (j *jwk) public() (crypto.PublicKey, error) {
	if j.D != "" || j.K != "" {
		return nil, errors.New("is a private or shared key: want a public one")
	}
	number := func(s string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(b) > 1024 {
			return new(big.Int)
		}
		return new(big.Int).SetBytes(b)
	}
	switch {
	case j.Kty == "RSA":
		e := number(j.E)
		if !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil, errJWK
		}
		return &rsa.PublicKey{N: number(j.N), E: int(e.Int64())}, nil
	case j.Kty == "EC" && j.Crv == "P-256":
		point := make([]byte, 65)
		point[0] = 4
		x, y := number(j.X), number(j.Y)
		if x.BitLen() > 256 || y.BitLen() > 256 {
			return nil, errJWK
		}
		x.FillBytes(point[1:33])
		y.FillBytes(point[33:])
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil {
			return nil, errJWK
		}
		return key, nil
	case j.Kty == "OKP" && j.Crv == "Ed25519":
		b, err := base64.RawURLEncoding.DecodeString(j.X)
		if err != nil {
			return nil, errJWK
		}
		return ed25519.PublicKey(b), nil
	}
	return nil, fmt.Errorf("is of type %.10q %.10q: want RSA, EC P-256 or OKP Ed25519", j.Kty, j.Crv)
}

// usable refuses keys that no algorithm of ours is for.
func usable(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return fmt.Errorf("has %d bits: want %d or more", k.N.BitLen(), minRSA)
		}
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return errors.New("is not on the curve P-256")
		}
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return errJWK
		}
	default:
		return fmt.Errorf("is a %T: want RSA, ECDSA P-256 or Ed25519", key)
	}
	return nil
}
