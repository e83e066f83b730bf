package bitcoin

import (
	"bytes"
	"math/big"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
)

// segwitHeight is the height from which Bitcoin's blocks commit to witnesses; on the other networks all
// blocks do. Source: Bitcoin Core, src/kernel/chainparams.cpp.
const segwitHeight = 481_824

// blockProblem returns the first check of a block against its hash that failed; "" if all passed. The checks
// are header hash, proof of work, coinbase and its height, Merkle root and witness commitment.
func blockProblem(
	params *chaincfg.Params,
	height uint64,
	hash string,
	header *wire.BlockHeader,
	txs []*wire.MsgTx,
) string {
	if header.BlockHash().String() != hash {
		return "has another hash"
	}

	if !meetsTarget(params, header) {
		return "does not meet its target: it has no proof of work"
	}

	if problem := contentsProblem(header, txs); problem != "" {
		return problem
	}

	if problem := heightProblem(params, height, txs[0]); problem != "" {
		return problem
	}

	if params.Net == chaincfg.MainNetParams.Net && height < segwitHeight {
		return ""
	}

	return witnessProblem(txs)
}

// meetsTarget reports whether the hash of a header is at most its target, and the target at most that of the
// network's lowest difficulty. Source: Bitcoin Core, src/pow.cpp, CheckProofOfWork.
func meetsTarget(params *chaincfg.Params, header *wire.BlockHeader) bool {
	target := compactTarget(header.Bits)
	if target.Cmp(params.PowLimit) > 0 {
		return false
	}

	hash := header.BlockHash() // little-endian
	for i := range len(hash) / 2 {
		hash[i], hash[len(hash)-1-i] = hash[len(hash)-1-i], hash[i]
	}

	return new(big.Int).SetBytes(hash[:]).Cmp(target) <= 0
}

// contentsProblem returns what is wrong with transactions that should be all of a header; "" if nothing is.
func contentsProblem(header *wire.BlockHeader, txs []*wire.MsgTx) string {
	// Inner nodes of a Merkle tree cannot pass for transactions (CVE-2017-12842): the first of them would
	// have to be a coinbase, too.
	for i, tx := range txs {
		if isCoinbase(tx) != (i == 0) {
			return "does not begin with its coinbase, or has two"
		}
	}

	ids := make([]chainhash.Hash, len(txs))
	seen := make(map[chainhash.Hash]bool, len(txs))

	for i, tx := range txs {
		ids[i] = tx.TxHash()
		if seen[ids[i]] { // a Merkle root alone does not show it (CVE-2012-2459)
			return "holds a transaction twice"
		}

		seen[ids[i]] = true
	}

	if len(ids) == 0 || merkleRoot(ids) != header.MerkleRoot {
		return "has transactions that are not those of its header: another Merkle root"
	}

	return ""
}

// isCoinbase reports whether a transaction is a block's reward: its one input spends no output.
func isCoinbase(tx *wire.MsgTx) bool {
	return len(tx.TxIn) == 1 &&
		tx.TxIn[0].PreviousOutPoint == *wire.NewOutPoint(&chainhash.Hash{}, ^uint32(0))
}

// commitmentPrefix begins the script of the coinbase output that commits to the witnesses. Source: BIP-141,
// "commitment structure".
var commitmentPrefix = []byte{txscript.OP_RETURN, 0x24, 0xaa, 0x21, 0xa9, 0xed}

// witnessProblem returns what is wrong with the witnesses of a block's transactions; "" if nothing is. A
// block without a commitment must have no witnesses.
func witnessProblem(txs []*wire.MsgTx) string {
	var commitment []byte // the last one counts

	for _, out := range txs[0].TxOut {
		if bytes.HasPrefix(out.PkScript, commitmentPrefix) &&
			len(out.PkScript) >= len(commitmentPrefix)+chainhash.HashSize {
			commitment = out.PkScript[len(commitmentPrefix):][:chainhash.HashSize]
		}
	}

	if commitment == nil {
		for _, tx := range txs {
			if tx.HasWitness() {
				return "has witnesses and commits to none"
			}
		}

		return ""
	}

	reserved := txs[0].TxIn[0].Witness
	if len(reserved) != 1 || len(reserved[0]) != chainhash.HashSize {
		return "commits to witnesses, and its coinbase has no reserved value for that"
	}

	ids := make([]chainhash.Hash, len(txs)) // the id of the coinbase counts as 0
	for i, tx := range txs[1:] {
		ids[i+1] = tx.WitnessHash()
	}

	root := merkleRoot(ids)
	if got := chainhash.DoubleHashB(append(root[:], reserved[0]...)); !bytes.Equal(got, commitment) {
		return "has witnesses that are not those it commits to"
	}

	return ""
}

// merkleRoot returns the Merkle root of transaction ids. There must be at least one; merkleRoot overwrites
// them. Source: Bitcoin Core, src/consensus/merkle.cpp.
func merkleRoot(ids []chainhash.Hash) chainhash.Hash {
	var pair [2 * chainhash.HashSize]byte

	for len(ids) > 1 {
		if len(ids)%2 == 1 {
			ids = append(ids, ids[len(ids)-1])
		}

		for i := 0; i < len(ids); i += 2 {
			copy(pair[:], ids[i][:])
			copy(pair[chainhash.HashSize:], ids[i+1][:])
			ids[i/2] = chainhash.DoubleHashH(pair[:])
		}

		ids = ids[:len(ids)/2]
	}

	return ids[0]
}
