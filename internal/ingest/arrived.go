package ingest

// This file computes what arrived: the net of a transaction's logs, or what the balance grew by if that is
// less (decisions 11, "What arrived").

import (
	"context"
	"log/slog"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// arrivals returns the transfers of a block or of a waiting transaction, net: what a transaction takes out of
// an address is taken from the latest transfers that it made to it before. Transfers of nothing are left
// out. The transfers of one transaction are adjacent and in its order.
func arrivals(transfers []chain.Transfer) []chain.Transfer {
	out := make([]chain.Transfer, 0, len(transfers))

	for from := 0; from < len(transfers); {
		to := from + 1
		for to < len(transfers) && transfers[to].TxHash == transfers[from].TxHash {
			to++
		}

		out = append(out, netOf(transfers[from:to])...)
		from = to
	}

	return out
}

// netOf returns the transfers of one transaction, net.
func netOf(transfers []chain.Transfer) []chain.Transfer {
	net := make([]chain.Transfer, 0, len(transfers))
	in := map[chain.Holding][]int{} // indexes in net of the transfers to an address

	for _, t := range transfers {
		if t.Amount.IsZero() {
			continue
		}

		to := chain.Holding{Address: t.To, AssetID: t.AssetID}
		in[to] = append(in[to], len(net))
		net = append(net, t)

		if t.From == "" {
			continue
		}

		left := t.Amount

		earlier := in[chain.Holding{Address: t.From, AssetID: t.AssetID}]
		for i := len(earlier) - 1; i >= 0 && !left.IsZero(); i-- {
			left = takeFrom(&net[earlier[i]], left)
		}
	}

	return withoutNothing(net)
}

// takeFrom reduces a transfer by at most an amount, and returns what is left of the amount.
func takeFrom(t *chain.Transfer, amount chain.Amount) (left chain.Amount) {
	left = amount.SubFloor(t.Amount)
	t.Amount = t.Amount.SubFloor(amount)

	return left
}

// withoutNothing returns the transfers of more than 0.
func withoutNothing(transfers []chain.Transfer) []chain.Transfer {
	out := transfers[:0]

	for _, t := range transfers {
		if !t.Amount.IsZero() {
			out = append(out, t)
		}
	}

	return out
}

// arrivalKey is a transfer in a block.
type arrivalKey struct {
	block string
	key   invoice.TransferKey
}

// measured are the amounts that arrived by the transfers in blocks, in base units.
type measured map[arrivalKey]chain.Amount

// measure returns what arrived by each transfer in a block of the batch: its net amount, or less where a
// token's balance shows that less arrived.
func (s *Ingester) measure(
	ctx context.Context,
	n chain.Network,
	blocks []chain.Block,
	matched []observedTransfer,
) measured {
	out := make(measured, len(matched))
	byBlock := map[string][]chain.Transfer{}

	for _, m := range matched {
		if m.at.IsZero() {
			continue
		}

		out[arrivalKey{m.at.Hash, m.key()}] = m.Amount

		if asset, ok := n.AssetByID(m.AssetID); ok && asset.Kind == chain.Token &&
			!m.Amount.Less(asset.Dust) {
			byBlock[m.at.Hash] = append(byBlock[m.at.Hash], m.Transfer)
		}
	}

	for _, block := range blocks {
		for _, t := range s.limitByBalance(ctx, n, block, byBlock[block.Hash]) {
			out[arrivalKey{block.Hash, invoice.KeyOf(t)}] = t.Amount
		}
	}

	return out
}

// limitByBalance returns those of the token transfers in a block by which less arrived than they say, with
// what did: as much as the receiver's balance grew in the block. A holding that several transactions moved,
// or whose balances the node cannot read at this block and the one before it, is not limited.
func (s *Ingester) limitByBalance(
	ctx context.Context,
	n chain.Network,
	block chain.Block,
	transfers []chain.Transfer,
) []chain.Transfer {
	driver, err := s.registry.Driver(n.Slug)
	if err != nil || block.Parent == "" || block.Height == 0 {
		return nil
	}

	balancer, can := driver.(chain.Balancer)
	holdings := singleMoved(block, transfers)

	if !can || len(holdings) == 0 {
		return nil
	}

	grown, err := growth(ctx, balancer, block, holdings)
	if err != nil {
		s.log.LogAttrs(
			ctx, slog.LevelDebug, "balances of a block could not be read; its logs count",
			slog.String("network", n.Slug), slog.Any("height", block.Height), slog.Any("error", err),
		)

		return nil
	}

	var out []chain.Transfer

	for i, holding := range holdings {
		out = append(out, limited(transfersTo(transfers, holding), grown[i])...)
	}

	return out
}

// singleMoved returns the holdings of the transfers that only one transaction of the block moved.
func singleMoved(block chain.Block, transfers []chain.Transfer) []chain.Holding {
	wanted := map[chain.Holding]bool{}

	var out []chain.Holding

	for _, t := range transfers {
		to := chain.Holding{Address: t.To, AssetID: t.AssetID}
		if !wanted[to] {
			wanted[to] = true

			out = append(out, to)
		}
	}

	movedBy := map[chain.Holding]string{}
	several := map[chain.Holding]bool{}

	for _, t := range block.Transfers {
		for _, address := range []chain.Address{t.From, t.To} {
			holding := chain.Holding{Address: address, AssetID: t.AssetID}
			if !wanted[holding] {
				continue
			}

			if by := movedBy[holding]; by != "" && by != t.TxHash {
				several[holding] = true
			}

			movedBy[holding] = t.TxHash
		}
	}

	single := out[:0]

	for _, holding := range out {
		if !several[holding] {
			single = append(single, holding)
		}
	}

	return single
}

// growth returns by how much each holding grew in a block, in base units; 0 when it shrank.
func growth(
	ctx context.Context,
	balancer chain.Balancer,
	block chain.Block,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	before, err := balancer.Balances(
		ctx, chain.Ref{Height: block.Height - 1, Hash: block.Parent}, holdings,
	)
	if err != nil {
		return nil, err
	}

	after, err := balancer.Balances(ctx, block.Ref, holdings)
	if err != nil {
		return nil, err
	}

	if len(before) != len(holdings) || len(after) != len(holdings) {
		return nil, errBalances
	}

	grown := make([]chain.Amount, len(holdings))
	for i := range holdings {
		grown[i] = after[i].SubFloor(before[i])
	}

	return grown, nil
}

// transfersTo returns the transfers to a holding.
func transfersTo(transfers []chain.Transfer, to chain.Holding) []chain.Transfer {
	var out []chain.Transfer

	for _, t := range transfers {
		if t.To == to.Address && t.AssetID == to.AssetID {
			out = append(out, t)
		}
	}

	return out
}

// limited reduces transfers, the latest first, so that together they are at most an amount, and returns
// those that it reduced.
func limited(transfers []chain.Transfer, most chain.Amount) []chain.Transfer {
	var sum chain.Amount
	for _, t := range transfers {
		sum = sum.Add(t.Amount)
	}

	excess := sum.SubFloor(most)

	var out []chain.Transfer

	for i := len(transfers) - 1; i >= 0 && !excess.IsZero(); i-- {
		excess = takeFrom(&transfers[i], excess)
		out = append(out, transfers[i])
	}

	return out
}
