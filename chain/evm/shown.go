package evm

import (
	"context"
	"math/big"
	"slices"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/price"
)

// shownBlock is what a block that was checked against its header shows of prices and gas.
type shownBlock struct {
	height   uint64
	time     uint64       // Unix seconds
	baseFee  chain.Amount // wei per gas
	tip      chain.Amount // wei per gas: the median that its signed transactions paid, 0 without one
	tipAlone chain.Amount // wei per gas: what a node may name alone beside it, see price.Alone
	gasLimit uint64
}

const (
	// keptBlocks is how many blocks are remembered.
	keptBlocks = 20
	// shownFor is how old the newest remembered block may be, in seconds before a node's newest block. Base fees
	// rise by an eighth a block at most: six blocks of 12 seconds double them.
	shownFor = 72
	// freshBlocks is how many blocks are read where none is young enough.
	freshBlocks = 3
)

// quietTip is the tip that a node may name alone where no block shows a tip: 1 gwei.
var quietTip = chain.Pow10(9)

// shownBlocks remembers what the blocks that were read last show. The zero value has none.
type shownBlocks struct {
	mu   sync.Mutex
	rows []shownBlock // the oldest reading first
}

// add remembers a block in place of an earlier one of its height.
func (s *shownBlocks) add(row shownBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.rows = slices.DeleteFunc(s.rows, func(old shownBlock) bool { return old.height == row.height })
	s.rows = append(s.rows, row)
	s.rows = s.rows[max(0, len(s.rows)-keptBlocks):]
}

// has reports whether a block of a height is remembered.
func (s *shownBlocks) has(height uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.ContainsFunc(s.rows, func(row shownBlock) bool { return row.height == height })
}

// highest returns the highest price of each kind and the highest gas limit that the blocks show.
func (s *shownBlocks) highest() (most shownBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, row := range s.rows {
		most.time = max(most.time, row.time)
		most.gasLimit = max(most.gasLimit, row.gasLimit)

		most.baseFee = chaindata.Max(most.baseFee, row.baseFee)
		most.tip, most.tipAlone = chaindata.Max(most.tip, row.tip), chaindata.Max(most.tipAlone, row.tipAlone)
	}

	return most
}

// shows remembers a block whose contents were checked.
func (d *driver) shows(block *verifiedBlock) {
	header := block.json.header
	if header == nil || header.BaseFee == nil {
		return
	}

	base, err := chain.AmountFromBig(header.BaseFee)
	if err != nil || maxPrice.Less(base) {
		return
	}

	row := shownBlock{height: block.ref.Height, time: header.Time, baseFee: base, gasLimit: header.GasLimit}
	tips := make([]*big.Int, 0, len(block.json.Transactions))

	for i := range block.json.Transactions {
		if tx := block.json.Transactions[i].signed; tx != nil {
			tips = append(tips, tx.EffectiveGasTipValue(header.BaseFee))
		}
	}

	if len(tips) > 0 {
		slices.SortFunc(tips, (*big.Int).Cmp)

		if tip, err := chain.AmountFromBig(tips[len(tips)/2]); err == nil && !maxPrice.Less(tip) {
			row.tip, row.tipAlone = tip, price.Alone(tip, header.GasUsed > header.GasLimit/2)
		}
	}

	d.shown.add(row)
}

// readShown returns what verified blocks show. It reads a node's newest ones where none is young enough, as a process
// that follows no network has read none, and where the node names prices above what those show that were read.
func (d *driver) readShown(ctx context.Context, node *endpoint, quote networkQuote) (shownBlock, error) {
	newest, err := quote.latest.ref(node)
	if err != nil {
		return shownBlock{}, err
	}

	most := d.shown.highest()
	young := most.gasLimit > 0 && most.time+shownFor >= uint64(*quote.latest.Timestamp)
	bounded := quote.baseFee.Cmp(d.baseFeeBound(most).Alone) <= 0 &&
		quote.tipCap.Cmp(d.tipBound(most, quote.baseFee).Alone) <= 0

	if young && (bounded || d.shown.has(newest.Height)) {
		return most, nil
	}

	from := newest.Height - min(newest.Height, freshBlocks-1)
	if _, err := d.readVerified(ctx, node, from, newest.Height); err != nil {
		return shownBlock{}, err
	}

	if most = d.shown.highest(); most.gasLimit == 0 {
		return most, node.Garbled("its newest blocks show no base fee and gas limit")
	}

	return most, nil
}

// baseFeeBound returns the bound of a base fee, in wei per gas. The network makes it, no transaction: it doubles in six
// blocks.
func (d *driver) baseFeeBound(shown shownBlock) price.Bound {
	return price.Bound{
		Alone:   shown.baseFee.Mul(price.Margin),
		Paid:    shown.baseFee,
		Highest: maxPrice,
	}
}

// tipBound returns the bound of a tip beside a base fee, in wei per gas.
func (d *driver) tipBound(shown shownBlock, baseFee chain.Amount) price.Bound {
	bound := price.Bound{Alone: shown.tipAlone, Paid: shown.tip, Highest: d.maxGasPrice.SubFloor(baseFee)}
	if shown.tip.IsZero() {
		bound.Alone = quietTip
	}

	return bound
}

// mostGas returns the most gas that a transaction may have: that of a block, and what the configuration says.
func (d *driver) mostGas(shown shownBlock) uint64 {
	if d.maxGas > 0 {
		return min(d.maxGas, shown.gasLimit)
	}

	return shown.gasLimit
}
