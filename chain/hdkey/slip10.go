package hdkey

// Ed25519 keys as SLIP-10 derives them: https://github.com/satoshilabs/slips/blob/master/slip-0010.md

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
)

// edNode is a private key of Ed25519 with its chain code. All its children are hardened.
type edNode struct {
	key, chain [32]byte
}

// edMaster returns the root of a seed.
func edMaster(seed []byte) *edNode { return edNodeFrom([]byte("ed25519 seed"), seed) }

// child returns the hardened child of the given element.
func (n *edNode) child(element uint32) *edNode {
	data := make([]byte, 1, 1+32+4)
	data = append(data, n.key[:]...)

	data = binary.BigEndian.AppendUint32(data, element|hardened)
	defer clear(data)

	return edNodeFrom(n.chain[:], data)
}

// derive walks down a path.
func (n *edNode) derive(p path) *edNode {
	for i, element := range p {
		next := n.child(element)
		if i > 0 {
			n.wipe()
		}

		n = next
	}

	return n
}

func edNodeFrom(key, data []byte) *edNode {
	mac := hmac.New(sha512.New, key)
	mac.Write(data)

	sum := mac.Sum(nil)
	defer clear(sum)

	n := new(edNode)
	copy(n.key[:], sum[:32])
	copy(n.chain[:], sum[32:])

	return n
}

// private returns the node's key in the form that crypto/ed25519 signs with.
func (n *edNode) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(n.key[:]) }

func (n *edNode) wipe() { *n = edNode{} }
