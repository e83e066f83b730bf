package bitcoin

import (
	"math/big"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
)

const (
	// retargetInterval is the number of blocks between two changes of the target. Source: Bitcoin Core,
	// DifficultyAdjustmentInterval.
	retargetInterval = 2016
	// maxRetarget is the factor by which a target grows at most. Source: Bitcoin Core,
	// CalculateNextWorkRequired.
	maxRetarget = 4
)

// scheduleProblem returns what is wrong with a header's target after its parent's, "" for nothing. Between
// changes the target stays, and a change makes it easier by at most maxRetarget. How much it changes depends
// on 2016 earlier blocks, which are not read. Networks that allow easy blocks by the clock (Testnet4) have no
// such rule.
func scheduleProblem(params *chaincfg.Params, height uint64, header, parent *wire.BlockHeader) string {
	switch {
	case params.ReduceMinDifficulty && !params.PoWNoRetargeting:
		return ""
	case params.PoWNoRetargeting || height%retargetInterval != 0:
		if header.Bits != parent.Bits {
			return "has another target than its parent"
		}

		return ""
	}

	easiest := new(big.Int).Mul(compactTarget(parent.Bits), big.NewInt(maxRetarget))
	if compactTarget(header.Bits).Cmp(easiest) > 0 {
		return "has a target that is too easy after its parent's"
	}

	return ""
}

// compactTarget returns the target in the compact form of headers. A negative one is 0.
func compactTarget(bits uint32) *big.Int {
	const negative = 0x00800000

	exponent, mantissa := uint(bits>>24), big.NewInt(int64(bits&0x007fffff))
	if bits&negative != 0 || exponent > 32 {
		return new(big.Int)
	}

	return mantissa.Rsh(mantissa.Lsh(mantissa, 8*exponent), 8*3)
}

// bip34Height is the height from which Bitcoin's coinbases begin with their height; on the other networks all
// do. Source: Bitcoin Core, src/kernel/chainparams.cpp.
const bip34Height = 227_931

// heightProblem returns what is wrong with the height that a coinbase begins with (BIP-34), "" for nothing.
func heightProblem(params *chaincfg.Params, height uint64, coinbase *wire.MsgTx) string {
	if height == 0 || params.Net == chaincfg.MainNetParams.Net && height < bip34Height {
		return ""
	}

	want, err := txscript.NewScriptBuilder().AddInt64(int64(height)).Script()
	if err != nil {
		return "has no height"
	}

	script := coinbase.TxIn[0].SignatureScript
	if len(script) < len(want) || string(script[:len(want)]) != string(want) {
		return "is of another height: its coinbase does not begin with it"
	}

	return ""
}
