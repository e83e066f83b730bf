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

// shownRate is the average rate that one block paid, in satoshi per 1000 virtual bytes.
type shownRate struct {
	height uint64
	rate   int64
}

// add remembers a block and replaces an earlier one of the same height.
func (s *shownRates) add(row shownRate) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.rows = slices.DeleteFunc(s.rows, func(old shownRate) bool { return old.height == row.height })
	s.rows = append(s.rows, row)
	s.rows = s.rows[max(0, len(s.rows)-shownBlocks):]
}

// highest returns the highest rate of the remembered blocks; has reports whether one of them has the given
// height.
func (s *shownRates) highest(height uint64) (rate int64, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, row := range s.rows {
		rate, has = max(rate, row.rate), has || row.height == height
	}

	return rate, has
}

// shows remembers a verified block. Its height determines its subsidy (Bitcoin Core, GetBlockSubsidy).
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

// rateBound returns the bound on a node's rates. Without a second node, a rate is at most the highest of
// these: twice the highest rate that blocks paid, Config.FallbackFeeRate and Config.MinFeeRate.
func (d *driver) rateBound(highest int64) price.Bound {
	alone := max(price.Margin*highest, int64(d.config.FallbackFeeRate), int64(d.config.MinFeeRate))

	return price.Bound{Shown: satoshiAmount(alone), Highest: satoshiAmount(int64(d.config.MaxFeeRate))}
}

// readShown returns the highest rate that verified blocks paid. If the node's rate is above the bound for
// that, and its newest block is not known, readShown reads the node's newest blocks. If the node does not
// give them, the result stays as it was.
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

// perThousand returns the rate of fees in satoshi for a weight, rounded down.
func perThousand(fees, weight int64) int64 {
	rate, _ := satoshi(satoshiAmount(fees).Mul(4000).Share(satoshiAmount(1), satoshiAmount(weight)))
	return rate
}
