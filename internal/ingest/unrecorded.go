package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// addUnrecorded adds what transactions of our wallets that are not on record left at an address, as of a block, but
// what is a payment of its own or stored as dust. What those of the address itself took counts once they are foreign.
// One that fulfilled a payout or a settlement is on record now.
func (k *leftovers) addUnrecorded(
	ctx context.Context,
	tx Tx,
	n chain.Network,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) error {
	rows, err := tx.UnrecordedOutgoing(ctx, n.Slug, "", time.Time{})
	if err != nil {
		return err
	}

	native, _ := n.Native()
	counted := map[string]bool{}

	paid := map[invoice.TransferKey]bool{}
	for _, p := range payments {
		paid[invoicestate.PaymentKey(p)] = true
	}

	for _, row := range rows {
		if row.Block.Height > at.Height || counted[row.TxHash] {
			continue
		}

		counted[row.TxHash] = true

		foreign := walletstate.IsForeign(row)
		if !foreign && !walletstate.IsOpen(row) {
			continue
		}

		if foreign && row.Address == address {
			k.taken[native.ID] = k.taken[native.ID].Add(row.Fee)
		}

		if row.Failed {
			continue
		}

		// What it takes back of what it brings is in neither: a payment by it is net of that.
		for _, t := range netOf(row.Transfers) {
			if t.To == address && !paid[invoicestate.KeyOf(t)] && !isTokenDust(n, t) {
				k.brought[t.AssetID] = k.brought[t.AssetID].Add(t.Amount)
			}
		}

		for assetID, out := range takenOf(row.Transfers, address) {
			if foreign {
				k.taken[assetID] = k.taken[assetID].Add(out)
			} else {
				k.unclear[assetID] = true
			}
		}
	}

	return nil
}

// takenOf returns what transfers take from an address beyond what they bring there, by asset and in base units.
func takenOf(transfers []chain.Transfer, address chain.Address) map[string]chain.Amount {
	in, out := map[string]chain.Amount{}, map[string]chain.Amount{}

	for _, t := range transfers {
		if t.To == address {
			in[t.AssetID] = in[t.AssetID].Add(t.Amount)
		}

		if t.From == address {
			out[t.AssetID] = out[t.AssetID].Add(t.Amount)
		}
	}

	for assetID := range out {
		if out[assetID] = out[assetID].SubFloor(in[assetID]); out[assetID].IsZero() {
			delete(out, assetID)
		}
	}

	return out
}

// isTokenDust reports whether a transfer is of a token and too small to be a payment.
func isTokenDust(n chain.Network, t chain.Transfer) bool {
	asset, enabled := n.AssetByID(t.AssetID)

	return enabled && asset.Kind == chain.Token && t.Amount.Less(asset.Dust)
}
