package bitcoin

import (
	"context"
	"slices"
	"sync"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/internal/price"
)

// shownBlocks is the number of blocks that are remembered. freshBlocks is the number of blocks to read if the
// newest one is not known.
const (
	shownBlocks = 6
	freshBlocks = 2
)

// firstSubsidy is the subsidy of the first blocks, in satoshi.
const firstSubsidy = 50 * 100_000_000

// shownRates are the average rates that the newest verified blocks paid. Their coinbase transactions claim
// the fees, and their proof of work commits to them, so that no node can invent them. The zero value has no
// rates.
type shownRates struct {
	mu   sync.Mutex
	rows []shownRate // the oldest reading first
}

// shownRate is the average rate that one block paid, and the highest that one node may name alone beside it
// (price.Alone), in satoshi per 1000 virtual bytes.
type shownRate struct {
	height      uint64
	paid, alone int64
}

// add remembers a block and replaces an earlier one of the same height.
func (s *shownRates) add(row shownRate) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.rows = slices.DeleteFunc(s.rows, func(old shownRate) bool { return old.height == row.height })
	s.rows = append(s.rows, row)
	s.rows = s.rows[max(0, len(s.rows)-shownBlocks):]
}

// highest returns the highest rates of the remembered blocks; has reports whether one of them has the given
// height.
func (s *shownRates) highest(height uint64) (most shownRate, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, row := range s.rows {
		most.paid, most.alone = max(most.paid, row.paid), max(most.alone, row.alone)
		has = has || row.height == height
	}

	return most, has
}

// fullWeight is half of a block's largest weight. Source: BIP-141.
const fullWeight = 2_000_000

// shows remembers a verified block. Its subsidy is that of its height (Bitcoin Core, GetBlockSubsidy).
func (d *driver) shows(height uint64, txs []*wire.MsgTx) {
	var claimed, weight int64

	for _, output := range txs[0].TxOut {
		claimed += output.Value
	}

	for _, tx := range txs[1:] {
		weight += weightOf(tx)
	}

	subsidy := int64(0)
	if halvings := height / uint64(d.params.SubsidyReductionInterval); halvings < 64 {
		subsidy = firstSubsidy >> halvings
	}

	row := shownRate{height: height}
	if fees := claimed - subsidy; fees > 0 && weight > 0 {
		row.paid = min(perThousand(fees, weight), maxSaneFeeRate)
		row.alone, _ = satoshi(price.Alone(satoshiAmount(row.paid), weight > fullWeight))
	}

	d.shown.add(row)
}

// rateBound returns the bound on a node's rates. Without a second node, a rate is at most the highest of these: what
// blocks allow (price.Alone), Config.FallbackFeeRate and Config.MinFeeRate.
func (d *driver) rateBound(shown shownRate) price.Bound {
	configured := max(int64(d.config.FallbackFeeRate), int64(d.config.MinFeeRate))

	return price.Bound{
		Alone:   satoshiAmount(max(shown.alone, configured)),
		Paid:    satoshiAmount(max(shown.paid, int64(d.config.MinFeeRate))),
		Highest: satoshiAmount(int64(d.config.MaxFeeRate)),
	}
}

// readShown returns the highest rates that verified blocks paid. If the node's rate is above the bound for that, and
// its newest block is not known, readShown reads the node's newest blocks. If the node does not give them, the result
// stays as it was.
func (d *driver) readShown(ctx context.Context, node *endpoint, said int64) shownRate {
	shown, _ := d.shown.highest(0)
	if satoshiAmount(said).Cmp(d.rateBound(shown).Alone) <= 0 {
		return shown
	}

	var tip uint64
	if err := node.call(ctx, &tip, "getblockcount"); err != nil {
		return shown
	}

	if _, known := d.shown.highest(tip); known || tip < freshBlocks {
		return shown
	}

	_, _ = d.readBlocks(ctx, node, tip+1-freshBlocks, freshBlocks)
	shown, _ = d.shown.highest(tip)

	return shown
}

// perThousand returns the rate of fees in satoshi for a weight, rounded down.
func perThousand(fees, weight int64) int64 {
	rate, _ := satoshi(satoshiAmount(fees).Mul(4000).Share(satoshiAmount(1), satoshiAmount(weight)))
	return rate
}
