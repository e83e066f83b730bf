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

// shownBlock holds the prices and the gas limit of a block that was checked against its header.
type shownBlock struct {
	height   uint64
	time     uint64       // Unix seconds
	baseFee  chain.Amount // wei per gas
	tip      chain.Amount // wei per gas: the median that its signed transactions paid, 0 without one
	tipAlone chain.Amount // wei per gas: what a node may name alone beside it, see price.Alone
	gasLimit uint64
}

const (
	// keptBlocks is the number of blocks that are remembered.
	keptBlocks = 20
	// shownFor is the most by which the newest remembered block may be older than a node's newest block, in
	// seconds. Base fees rise by an eighth a block at most: six blocks of 12 seconds double them.
	shownFor = 72
	// freshBlocks is the number of blocks to read when no remembered block is recent enough.
	freshBlocks = 3
)

// quietTip bounds the tip of a single node where no block shows a tip: 1 gwei.
var quietTip = chain.Pow10(9)

// shownBlocks remembers the prices of recently read blocks. The zero value remembers none.
type shownBlocks struct {
	mu   sync.Mutex
	rows []shownBlock // the oldest reading first
}

// add remembers a block and replaces an earlier one of the same height.
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

// highest returns the highest price of each kind and the highest gas limit of the remembered blocks.
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

// shows remembers a block whose contents were verified.
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

// readShown returns the prices and the gas limit of verified blocks. It reads a node's newest blocks if no
// remembered one is recent enough, as in a process that follows no network. It also reads them if the node
// asks for prices above the bounds of the remembered ones.
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

// tipBound returns the bound on a node's tip, in wei per gas. Tip and baseFee together stay within the
// highest price.
func (d *driver) tipBound(shown shownBlock, baseFee chain.Amount) price.Bound {
	bound := price.Bound{Alone: shown.tipAlone, Paid: shown.tip, Highest: d.maxGasPrice.SubFloor(baseFee)}
	if shown.tip.IsZero() {
		bound.Alone = quietTip
	}

	return bound
}

// mostGas returns the most gas that a transaction may have: the gas limit of blocks, or Config.MaxGas if
// lower.
func (d *driver) mostGas(shown shownBlock) uint64 {
	if d.maxGas > 0 {
		return min(d.maxGas, shown.gasLimit)
	}

	return shown.gasLimit
}
