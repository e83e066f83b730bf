package bitcoin

import (
	"math/big"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
)

const (
	// retargetInterval is the length of a period: the number of blocks between two changes of the target.
	// Source: Bitcoin Core, DifficultyAdjustmentInterval.
	retargetInterval = 2016
	// retargetTimespan is the intended duration of a period in seconds: two weeks. Source: Bitcoin Core,
	// nPowTargetTimespan.
	retargetTimespan = 14 * 24 * 60 * 60
	// maxRetarget is the largest factor by which a target changes. Source: Bitcoin Core,
	// CalculateNextWorkRequired.
	maxRetarget = 4
	// easyAfter is the number of seconds after its parent from which a test network's block may be easy: two
	// block times. Source: Bitcoin Core, GetNextWorkRequired.
	easyAfter = 20 * 60
	// maxTimewarp is the largest number of seconds by which a period of Testnet4 may begin before its parent
	// (BIP-94).
	maxTimewarp = 600
)

// periodStart returns the height of the first block of the period that determines the target at a height; ok
// is false if the target follows from the parent alone.
func periodStart(params *chaincfg.Params, height uint64) (start uint64, ok bool) {
	switch {
	case params.PoWNoRetargeting || height == 0:
		return 0, false
	case height%retargetInterval == 0:
		return height - retargetInterval, true
	}

	return height - height%retargetInterval, params.ReduceMinDifficulty
}

// targetProblem returns what is wrong with a header's target, given its parent; "" if nothing is. first
// begins the period of periodStart; nil if there is none. Source: Bitcoin Core, src/pow.cpp,
// GetNextWorkRequired; BIP-94.
func targetProblem(
	params *chaincfg.Params,
	height uint64,
	header, parent, first *wire.BlockHeader,
) string {
	want := parent.Bits

	switch {
	case first == nil:
		// The target stays.
	case height%retargetInterval == 0:
		if params.EnforceBIP94 && header.Timestamp.Unix() < parent.Timestamp.Unix()-maxTimewarp {
			return "begins its period long before its parent"
		}

		if !params.EnforceBIP94 && first.Bits != parent.Bits {
			return "ends a period that began with another target"
		}

		want = retarget(params, first.Bits, parent.Timestamp.Unix()-first.Timestamp.Unix())
	case header.Timestamp.Unix() > parent.Timestamp.Unix()+easyAfter:
		want = params.PowLimitBits
	default:
		want = first.Bits // an easy block does not change the next target
	}

	if header.Bits != want {
		return "has another target than its chain asks for"
	}

	return ""
}

// retarget returns the target after a period, in compact form. bits is the target of the period, seconds the
// time from its first block to its last: one block time less than the whole period. Source: Bitcoin Core,
// CalculateNextWorkRequired.
func retarget(params *chaincfg.Params, bits uint32, seconds int64) uint32 {
	seconds = min(max(seconds, retargetTimespan/maxRetarget), retargetTimespan*maxRetarget)

	target := compactTarget(bits)
	target.Mul(target, big.NewInt(seconds))
	target.Div(target, big.NewInt(retargetTimespan))

	if target.Cmp(params.PowLimit) > 0 {
		target = params.PowLimit
	}

	return compactBits(target)
}

// compactBits returns the compact form of a target, rounded down to its three highest bytes. Source: Bitcoin Core,
// arith_uint256::GetCompact.
func compactBits(target *big.Int) uint32 {
	const negative = 0x00800000

	size := uint((target.BitLen() + 7) / 8)
	mantissa := new(big.Int).Rsh(new(big.Int).Lsh(target, 8*3), 8*size).Uint64()

	if mantissa&negative != 0 {
		mantissa, size = mantissa>>8, size+1
	}

	return uint32(size)<<24 | uint32(mantissa)
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
// coinbases do. Source: Bitcoin Core, src/kernel/chainparams.cpp.
const bip34Height = 227_931

// heightProblem returns what is wrong with the height at the start of a coinbase (BIP-34); "" if nothing is.
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
