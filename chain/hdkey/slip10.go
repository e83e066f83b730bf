package hdkey

// Ed25519 keys as SLIP-10 derives them: https://github.com/satoshilabs/slips/blob/master/slip-0010.md

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
)

// ed25519Node is an Ed25519 private key with its chain code. All its children are hardened.
type ed25519Node struct {
	key, chain [32]byte
}

// newEd25519Master returns the root of a seed.
func newEd25519Master(seed []byte) *ed25519Node { return newEd25519Node([]byte("ed25519 seed"), seed) }

// child returns the hardened child at an element.
func (n *ed25519Node) child(element uint32) *ed25519Node {
	data := make([]byte, 1, 1+32+4)
	data = append(data, n.key[:]...)

	data = binary.BigEndian.AppendUint32(data, element|hardened)
	defer clear(data)

	return newEd25519Node(n.chain[:], data)
}

// derive returns the descendant at a path and wipes the nodes between them.
func (n *ed25519Node) derive(keyPath path) *ed25519Node {
	for i, element := range keyPath {
		next := n.child(element)
		if i > 0 {
			n.wipe()
		}

		n = next
	}

	return n
}

// newEd25519Node returns the node whose key and chain code are the halves of HMAC-SHA512(key,
// data).
func newEd25519Node(key, data []byte) *ed25519Node {
	mac := hmac.New(sha512.New, key)
	mac.Write(data)

	sum := mac.Sum(nil)
	defer clear(sum)

	n := new(ed25519Node)
	copy(n.key[:], sum[:32])
	copy(n.chain[:], sum[32:])

	return n
}

// private returns the key in the form of crypto/ed25519.
func (n *ed25519Node) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(n.key[:]) }

// wipe zeroes the key and the chain code.
func (n *ed25519Node) wipe() { *n = ed25519Node{} }
