package ingest

// This file computes what arrived: the net of a transaction's logs, or what the balance grew by if that is
// less (decisions 11, "What arrived").

import (
	"context"
	"errors"
	"log/slog"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// arrivals returns the transfers of a block or of a waiting transaction, net: what a transaction takes out of
// an address is taken from the latest transfers that it made to it before, and the rest from the next ones, as some
// tokens log what they take back before what they give. Transfers of nothing are left out. The transfers of one
// transaction are adjacent and in its order.
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
	in := map[chain.Holding][]int{}           // indexes in net of the transfers to an address
	ahead := map[chain.Holding]chain.Amount{} // what was taken out of an address before it was there

	for _, t := range transfers {
		if t.Amount.IsZero() {
			continue
		}

		to := chain.Holding{Address: t.To, AssetID: t.AssetID}
		in[to] = append(in[to], len(net))
		net = append(net, t)
		ahead[to] = takeFrom(&net[len(net)-1], ahead[to])

		if t.From == "" {
			continue
		}

		from := chain.Holding{Address: t.From, AssetID: t.AssetID}
		left := t.Amount

		earlier := in[from]
		for i := len(earlier) - 1; i >= 0 && !left.IsZero(); i-- {
			left = takeFrom(&net[earlier[i]], left)
		}

		ahead[from] = ahead[from].Add(left)
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
// token's balance shows that less arrived. unmeasured are those whose balances could not be read: what their
// logs say is provisional.
func (s *Ingester) measure(
	ctx context.Context,
	n chain.Network,
	blocks []chain.Block,
	matched []observedTransfer,
) (amounts measured, unmeasured map[arrivalKey]bool) { // spec D11.4
	amounts, unmeasured = make(measured, len(matched)), map[arrivalKey]bool{}
	byBlock := map[string][]chain.Transfer{}

	for _, m := range matched {
		if m.at.IsZero() {
			continue
		}

		amounts[arrivalKey{m.at.Hash, m.key()}] = m.Amount

		if isMeasured(n, m.Transfer) {
			byBlock[m.at.Hash] = append(byBlock[m.at.Hash], m.Transfer)
		}
	}

	for _, block := range blocks {
		transfers := byBlock[block.Hash]

		limited, err := s.limitByBalance(ctx, n, block, transfers)
		for _, t := range limited {
			amounts[arrivalKey{block.Hash, invoicestate.KeyOf(t)}] = t.Amount
		}

		if err == nil {
			continue
		}

		s.logUnmeasured(ctx, n, block, err)

		for _, t := range transfers {
			unmeasured[arrivalKey{block.Hash, invoicestate.KeyOf(t)}] = true
		}
	}

	return amounts, unmeasured
}

// isMeasured reports whether the balance of its receiver says what arrived by a transfer.
func isMeasured(n chain.Network, t chain.Transfer) bool {
	asset, ok := n.AssetByID(t.AssetID)

	return ok && asset.Kind == chain.Token && !t.Amount.Less(asset.Dust)
}

// logUnmeasured logs why the token payments of a block wait. That of a retry row, of whose block only its transfer is
// at hand, has been logged.
func (s *Ingester) logUnmeasured(ctx context.Context, n chain.Network, block chain.Block, err error) {
	if errors.Is(err, errUnmeasured) {
		return
	}

	s.log.LogAttrs(
		ctx,
		slog.LevelWarn,
		"balances of a block could not be read; its token payments wait until they can",
		slog.String("network", n.Slug),
		slog.Any("height", block.Height),
		slog.Any("error", err),
	)
}

// limitByBalance returns those of the token transfers in a block by which less arrived than they say, with
// what did. What a receiver's balance lacks after the block, of what the block's logs say, is taken from the
// latest transfers to it. It fails where the driver reads balances and could not read them at this block
// and the one before it; with errUnmeasured where that one is not known.
func (s *Ingester) limitByBalance(
	ctx context.Context,
	n chain.Network,
	block chain.Block,
	transfers []chain.Transfer,
) (limited []chain.Transfer, err error) {
	driver, err := s.registry.Driver(n.Slug)
	if err != nil || len(transfers) == 0 {
		return nil, nil //nolint:nilerr // a network that is not served has no balances
	}

	balancer, can := driver.(chain.Balancer)
	if !can {
		return nil, nil
	}

	if block.Parent == "" || block.Height == 0 {
		return nil, errUnmeasured
	}

	holdings := receivers(transfers)

	missing, err := shortfalls(ctx, balancer, block, holdings)
	if err != nil {
		return nil, err
	}

	for i, holding := range holdings {
		limited = append(limited, reduced(transfersTo(transfers, holding), missing[i])...)
	}

	return limited, nil
}

// receivers returns the holdings that transfers go to, each once.
func receivers(transfers []chain.Transfer) []chain.Holding {
	seen := map[chain.Holding]bool{}

	var out []chain.Holding

	for _, t := range transfers {
		to := chain.Holding{Address: t.To, AssetID: t.AssetID}
		if !seen[to] {
			seen[to] = true

			out = append(out, to)
		}
	}

	return out
}

// shortfalls returns how much less each holding has after a block than before it with all that the block's
// logs say, in base units; 0 when it has as much or more.
func shortfalls(
	ctx context.Context,
	balancer chain.Balancer,
	block chain.Block,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	before, err := balancer.Balances(
		ctx, chain.Ref{Height: block.Height - 1, Hash: block.Parent}, holdings,
	)
	if err = chaindata.WithoutProvisional(err); err != nil {
		return nil, err
	}

	after, err := balancer.Balances(ctx, block.Ref, holdings)
	if err = chaindata.WithoutProvisional(err); err != nil {
		return nil, err
	}

	if len(before) != len(holdings) || len(after) != len(holdings) {
		return nil, errBalances
	}

	missing := make([]chain.Amount, len(holdings))

	for i, holding := range holdings {
		in, out := logged(block, holding)

		expected, ok := before[i].AddOK(in)
		if !ok {
			continue // no balance can be that high: the logs are no sums
		}

		missing[i] = expected.SubFloor(out).SubFloor(after[i])
	}

	return missing, nil
}

// logged returns the sums of a block's transfers to and from a holding, in base units, at most the largest
// amount there is.
func logged(block chain.Block, holding chain.Holding) (in, out chain.Amount) {
	add := func(sum, amount chain.Amount) chain.Amount {
		if total, ok := sum.AddOK(amount); ok {
			return total
		}

		return chaindata.Max(sum, amount)
	}

	for _, t := range block.Transfers {
		if t.AssetID != holding.AssetID {
			continue
		}

		if t.To == holding.Address {
			in = add(in, t.Amount)
		}

		if t.From == holding.Address {
			out = add(out, t.Amount)
		}
	}

	return in, out
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

// reduced takes an amount from transfers, the latest first, and returns those that it reduced.
func reduced(transfers []chain.Transfer, missing chain.Amount) []chain.Transfer {
	var out []chain.Transfer

	for i := len(transfers) - 1; i >= 0 && !missing.IsZero(); i-- {
		missing = takeFrom(&transfers[i], missing)
		out = append(out, transfers[i])
	}

	return out
}
