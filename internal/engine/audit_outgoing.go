package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
)

// This file reports transactions of our addresses that are not on record.

// unrecorded reports each transaction that nobody has acknowledged yet.
func (a *auditor) unrecorded(ctx context.Context) error {
	rows, err := a.config.Store.UnrecordedOutgoing(ctx, a.network.Slug, "", a.config.Now().Add(time.Hour))
	if err != nil {
		return err
	}

	reported := map[string]bool{}

	for _, row := range rows {
		if !row.Open() || reported[row.TxHash] || row.Block.Height > a.out.At.Height {
			continue
		}

		reported[row.TxHash] = true
		a.report(audit.Difference{
			Kind:    audit.ForeignTransaction,
			Address: row.Address,
			Message: fmt.Sprintf(
				"transaction %s of %s in block %d is not on record: the records are older than the chain, or somebody "+
					"else has the key; see Engine.Acknowledge",
				row.TxHash, row.Address, row.Block.Height,
			),
			Records: []audit.Record{{Object: "transaction", TxHash: row.TxHash, Height: row.Block.Height}},
		})
	}

	return nil
}

// isRecorded reports whether a nonce is that of a transaction which unrecorded reports, or which was
// acknowledged.
func (a *auditor) isRecorded(ctx context.Context, from chain.Address, nonce uint64) (bool, error) {
	key := chain.Spend{Sender: from, Nonce: nonce}.Key()

	rows, err := a.config.Store.OutgoingByKey(ctx, a.network.Slug, []string{key})

	return err == nil && len(rows) > 0 && rows[0].Unrecorded, err
}
