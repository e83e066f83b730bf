package evm

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// trieLeaf is one value of a list with the nibbles of its key.
type trieLeaf struct {
	key   []byte
	value []byte
}

// listRoot returns the root of the Merkle Patricia trie that holds value i under the key rlp(i), like the
// roots of transactions and receipts in a header. Source: Ethereum yellow paper, section 4.3.2 and appendix
// D.
func listRoot(values [][]byte) common.Hash {
	if len(values) == 0 {
		return types.EmptyRootHash
	}

	leaves := make([]trieLeaf, len(values))
	for i, value := range values {
		leaves[i] = trieLeaf{key: nibbles(rlp.AppendUint64(nil, uint64(i))), value: value}
	}

	slices.SortFunc(leaves, func(a, b trieLeaf) int { return bytes.Compare(a.key, b.key) })

	return crypto.Keccak256Hash(trieNode(leaves, 0))
}

// nibbles returns the half-bytes of a key, the high one first.
func nibbles(key []byte) []byte {
	out := make([]byte, 0, 2*len(key))
	for _, b := range key {
		out = append(out, b>>4, b&0x0f)
	}

	return out
}

// trieNode returns the encoding of the node above sorted leaves whose keys agree up to depth. No key of
// a list is a prefix of another, so branches hold no value.
func trieNode(leaves []trieLeaf, depth int) []byte {
	w := rlp.NewEncoderBuffer(nil)
	list := w.List()

	first, last := leaves[0].key, leaves[len(leaves)-1].key

	common := depth
	for len(leaves) > 1 && first[common] == last[common] {
		common++
	}

	switch {
	case len(leaves) == 1:
		w.WriteBytes(compactKey(first[depth:], true))
		w.WriteBytes(leaves[0].value)
	case common > depth:
		w.WriteBytes(compactKey(first[depth:common], false))
		writeChild(w, trieNode(leaves, common))
	default:
		for nibble := range byte(16) {
			end := 0
			for end < len(leaves) && leaves[end].key[depth] == nibble {
				end++
			}

			if end == 0 {
				w.WriteBytes(nil)
				continue
			}

			writeChild(w, trieNode(leaves[:end], depth+1))
			leaves = leaves[end:]
		}

		w.WriteBytes(nil)
	}

	w.ListEnd(list)

	return w.ToBytes()
}

// writeChild writes a reference to a node: the node itself if it is shorter than a hash, else its hash.
func writeChild(w rlp.EncoderBuffer, node []byte) {
	if len(node) < common.HashLength {
		_, _ = w.Write(node) // writes to memory
		return
	}

	w.WriteBytes(crypto.Keccak256(node))
}

// compactKey returns the hex-prefix encoding of nibbles. Source: yellow paper, appendix C.
func compactKey(nibbles []byte, leaf bool) []byte {
	var flags byte
	if leaf {
		flags = 2
	}

	out := []byte{flags << 4}
	if len(nibbles)%2 == 1 {
		out[0] = (flags|1)<<4 | nibbles[0]
		nibbles = nibbles[1:]
	}

	for i := 0; i < len(nibbles); i += 2 {
		out = append(out, nibbles[i]<<4|nibbles[i+1])
	}

	return out
}
