package bitcoin

import (
	"context"
	"slices"
	"sync"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/internal/price"
)

// shownBlocks is how many blocks are remembered, freshBlocks how many are read where the newest one is not known.
const (
	shownBlocks = 6
	freshBlocks = 2
)

// firstSubsidy is the subsidy of the first blocks, in satoshi.
const firstSubsidy = 50 * 100_000_000

// shownRates are the average rates that the newest verified blocks paid. Their coinbase transactions claim the fees,
// and their proof of work commits to them: no node makes them up. The zero value has none.
type shownRates struct {
	mu   sync.Mutex
	rows []shownRate // the oldest reading first
}

// shownRate is what one block paid, in satoshi per 1000 virtual bytes.
type shownRate struct {
	height uint64
	rate   int64
}

// add remembers a block in place of an earlier one of its height.
func (s *shownRates) add(row shownRate) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.rows = slices.DeleteFunc(s.rows, func(old shownRate) bool { return old.height == row.height })
	s.rows = append(s.rows, row)
	s.rows = s.rows[max(0, len(s.rows)-shownBlocks):]
}

// highest returns the highest rate of the blocks; has reports whether one of a height is among them.
func (s *shownRates) highest(height uint64) (rate int64, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, row := range s.rows {
		rate, has = max(rate, row.rate), has || row.height == height
	}

	return rate, has
}

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
		row.rate = min(perThousand(fees, weight), maxSaneFeeRate)
	}

	d.shown.add(row)
}

// rateBound returns the bound of what a node says of rates: what it may say alone is twice what blocks paid, and what
// the configuration takes without any estimate.
func (d *driver) rateBound(highest int64) price.Bound {
	alone := max(price.Margin*highest, int64(d.config.FallbackFeeRate), int64(d.config.MinFeeRate))

	return price.Bound{Shown: satoshiAmount(alone), Highest: satoshiAmount(int64(d.config.MaxFeeRate))}
}

// readShown returns the highest rate that verified blocks show. Where a node says more than that allows, and its newest
// block is not known, it reads its newest blocks. A node that does not show them says no more than is known.
func (d *driver) readShown(ctx context.Context, node *endpoint, said int64) int64 {
	highest, _ := d.shown.highest(0)
	if satoshiAmount(said).Cmp(d.rateBound(highest).Shown) <= 0 {
		return highest
	}

	var tip uint64
	if err := node.call(ctx, &tip, "getblockcount"); err != nil {
		return highest
	}

	if _, known := d.shown.highest(tip); known || tip < freshBlocks {
		return highest
	}

	_, _ = d.readBlocks(ctx, node, tip+1-freshBlocks, freshBlocks)
	highest, _ = d.shown.highest(tip)

	return highest
}

// perThousand returns fees in satoshi for a weight as a rate, rounded down.
func perThousand(fees, weight int64) int64 {
	rate, _ := satoshi(satoshiAmount(fees).Mul(4000).Share(satoshiAmount(1), satoshiAmount(weight)))
	return rate
}
