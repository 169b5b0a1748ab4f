package sqlstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
)

// master is a key of 32 bytes that seals by XAES-256-GCM (c2sp.org/XAES-256-GCM): each
// seal has an AES-256-GCM key of its own, which 12 random bytes derive from the master,
// and a random nonce of 12 bytes.
//
// AES-GCM with random nonces alone allows 2^32 seals under one key (NIST SP 800-38D
// section 8.3), which a busy store makes in weeks, and no one counts them across
// processes. With 24 random bytes the same bound is met after 2^80 seals.
type master struct {
	block  cipher.Block
	k1     [aes.BlockSize]byte // of CMAC (NIST SP 800-38B)
	before cipher.AEAD         // what earlier versions sealed by: AES-256-GCM under the master itself
}

// deriveBy is how many random bytes derive a key.
const deriveBy = 12

func newMaster(secret []byte) (*master, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	m := &master{block: block}
	block.Encrypt(m.k1[:], m.k1[:])
	msb := byte(0)
	for i := len(m.k1) - 1; i >= 0; i-- {
		msb, m.k1[i] = m.k1[i]>>7, m.k1[i]<<1|msb
	}
	m.k1[len(m.k1)-1] ^= byte(subtle.ConstantTimeSelect(int(msb), 0x87, 0))
	m.before, err = cipher.NewGCMWithRandomNonce(block)
	return m, err
}

// derived returns the AEAD of one seal: the CMAC of two blocks, of which each is one
// half of its key (NIST SP 800-108r1, counter mode).
func (m *master) derived(by []byte) (cipher.AEAD, error) {
	var key [32]byte
	for i := range 2 {
		half := key[i*aes.BlockSize:][:aes.BlockSize]
		copy(half, []byte{0, byte(i + 1), 'X', 0})
		copy(half[4:], by)
		subtle.XORBytes(half, half, m.k1[:])
		m.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal appends the box of plain to head.
func (m *master) seal(head, plain, aad []byte) ([]byte, error) {
	by := make([]byte, deriveBy)
	_, _ = rand.Read(by) // never fails
	aead, err := m.derived(by)
	if err != nil {
		return nil, err
	}
	return aead.Seal(append(head, by...), nil, plain, aad), nil
}

// open opens a box.
func (m *master) open(box, aad []byte) ([]byte, error) {
	if len(box) < deriveBy {
		return nil, errShort
	}
	aead, err := m.derived(box[:deriveBy])
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, box[deriveBy:], aad)
}
