package ingest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// orphan marks a payment as orphaned: its block left the chain.
func (in *intake) orphan(ctx context.Context, stored invoice.Payment) error { // spec D3.2
	a, p, err := in.payment(ctx, stored)
	if err != nil {
		return err
	}

	if p.TxHash == "" { // only the balance of the address can bring it back
		rows, err := in.tx.MatchAddresses(ctx, in.n.Space(), []chain.Address{p.Address})
		if err != nil {
			return err
		}

		if err := checkSoon(ctx, in.tx, in.now, true, rows...); err != nil {
			return err
		}
	}

	return in.move(
		a,
		p,
		func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Orphan(p, in.now) },
	)
}
