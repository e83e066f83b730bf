package engine

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// react runs the reactions of other domains to an event, in the transaction that appended it. The list is
// complete.
func (e *Engine) react(ctx context.Context, tx Tx, ev event.Event) error {
	switch record := ev.Payload.(type) {
	case invoice.Payment:
		return e.paymentChanged(ctx, tx, ev.Type, record)
	case wallet.Transaction:
		// One of our transactions changed state: its release, recovery or payout follows.
		if err := e.Sweeper.TransactionTx(ctx, tx, record); err != nil {
			return err
		}

		if err := e.Transactions.RecoveryTx(ctx, tx, record); err != nil {
			return err
		}

		return e.Payouts.TransactionTx(ctx, tx, record)
	case payout.Refund:
		// A refund changed state: its invoice's refund flags follow.
		return e.refundChanged(ctx, tx, ev.Type, record)
	case settlement.Settlement:
		// The merchant of a deposit address is notified with the deposit's own event type.
		if ev.Type == event.SettlementReleased {
			return e.depositReleased(ctx, tx, record)
		}
	case account.Account:
		// A merchant's settings changed: settlements that wait are planned again.
		return e.settingsChanged(ctx, tx, record)
	}

	return nil
}

// paymentChanged opens the settlement of a payment that got its value, and ends the settlement of a lost one.
func (e *Engine) paymentChanged(ctx context.Context, tx Tx, typ event.Type, p invoice.Payment) error {
	switch typ {
	case event.PaymentValued:
		// A confirmed payment has a price: its settlement opens, or returns to the queue.
		return e.openSettlement(ctx, tx, p)
	case event.PaymentLost:
		// A payment left the chain: its settlement fails, or is reverted if it was released;
		// refunds of it that are not signed are canceled.
		if err := e.Sweeper.PaymentLostTx(ctx, tx, p.ID); err != nil {
			return err
		}

		return e.uncovered.PaymentLostTx(ctx, tx, p.Owner, p.ID, p.InvoiceID)
	default:
		return nil
	}
}

// settingsChanged has the settlements of an account planned again, in both modes.
func (e *Engine) settingsChanged(ctx context.Context, tx Tx, a account.Account) error {
	for _, livemode := range []bool{false, true} {
		owner := event.Owner{AccountID: a.ID, Livemode: livemode}
		if err := e.Sweeper.SettingsTx(ctx, tx, owner); err != nil {
			return err
		}
	}

	return nil
}

// queueFunded has settlements planned that waited for a balance. It runs after the commit that raised the
// balance, since balances are locked after settlements everywhere. If it fails, the planner finds them at its
// own pace.
func (e *Engine) queueFunded(ctx context.Context, b wallet.Balance) {
	err := e.Update(ctx, func(ctx context.Context, tx Tx) error {
		return e.Sweeper.FundedTx(ctx, tx, b.Owner, b.Network, b.Available())
	})
	if err != nil {
		e.config.Log.WarnContext(
			ctx, "settlements that wait for native coin are released a minute later",
			"network", b.Network, "wallet", b.Address, "error", err,
		)
	}
}

func (e *Engine) openSettlement(ctx context.Context, tx Tx, p invoice.Payment) error { // spec 1.1
	n, _ := e.Networks.Network(p.Network)
	asset, _ := n.AssetByID(p.AssetID)
	_, err := e.Sweeper.OpenTx(ctx, tx, sweep.OpenParams{
		Owner:            p.Owner,
		PaymentID:        p.ID,
		InvoiceID:        p.InvoiceID,
		DepositAddressID: p.DepositAddressID,
		Network:          p.Network,
		Asset:            asset,
		Deposit:          chain.Party{Key: p.Key, Address: p.Address},
		Gross:            p.Amount,
		USDValue:         p.USDValue.Decimal,
		NativePrice:      p.NativeUSD.Decimal,
		ConfirmedAt:      p.ConfirmedAt,
		Simulated:        p.Simulated,
	})

	return err
}

// PaymentResource is a payment with its settlement, as the API shows it.
type PaymentResource struct {
	invoice.PaymentResource
	Settlement *settlement.Resource `json:"settlement,omitempty"`
}

// EventPayment is a payment inside an event, with only the id and the status of its settlement.
type EventPayment struct { // spec 2.7.7
	invoice.PaymentResource
	Settlement *eventSettlement `json:"settlement,omitempty"`
}

type eventSettlement struct {
	ID     string            `json:"id"`
	Status settlement.Status `json:"status"`
}

// EventDeposit is data.object of the deposit.* events (specification part 6).
type EventDeposit struct { // spec 6.4
	Payment        EventPayment            `json:"payment"`
	DepositAddress invoice.DepositResource `json:"deposit_address"`
}

// eventObject returns the object of an event as the API shows it.
func (e *Engine) eventObject(ctx context.Context, tx *transaction, ev event.Event) (any, error) {
	switch record := ev.Payload.(type) {
	case invoice.Invoice:
		return record.Resource(e.CheckoutBase()), nil
	case invoice.Payment:
		return e.eventPayment(ctx, tx, ev.Type, record)
	case settlement.Settlement:
		return record.Resource(), nil
	case payout.Payout:
		return record.Resource(), nil
	case payout.Refund:
		return record.Resource(), nil
	case webhook.Endpoint:
		return record.Resource(), nil
	default:
		return nil, fmt.Errorf("an event cannot show a %T", record)
	}
}

func (e *Engine) eventPayment(
	ctx context.Context,
	tx *transaction,
	typ event.Type,
	p invoice.Payment,
) (any, error) {
	tip, err := tx.tip(ctx, p.Network)
	if err != nil {
		return nil, err
	}

	v := EventPayment{PaymentResource: p.Resource(tip)}
	if !p.ConfirmedAt.IsZero() {
		of, err := tx.SettlementsOfPayments(ctx, []string{p.ID})
		if err != nil {
			return nil, err
		}

		if len(of) > 0 {
			v.Settlement = &eventSettlement{of[0].ID, of[0].Status}
		}
	}

	if typ == event.DepositPaymentDetected || typ == event.DepositPaymentConfirmed ||
		typ == event.DepositPaymentReleased {
		d, err := tx.DepositAddress(ctx, p.Owner, p.DepositAddressID)
		if err != nil {
			return nil, err
		}

		accounts, err := e.Invoices.TokenAccounts(d)
		if err != nil {
			return nil, err
		}

		return EventDeposit{Payment: v, DepositAddress: d.Resource(accounts)}, nil
	}

	return v, nil
}

// PaymentResources returns payments as the API shows them, with their settlements in full. It makes one query
// for all settlements and one per network.
func (e *Engine) PaymentResources(
	ctx context.Context,
	payments ...invoice.Payment,
) ([]PaymentResource, error) {
	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}

	settlements, err := e.config.Store.SettlementsOfPayments(ctx, ids)
	if err != nil {
		return nil, err
	}

	shown, err := e.SettlementResources(ctx, settlements...)
	if err != nil {
		return nil, err
	}

	byPayment := make(map[string]settlement.Resource, len(settlements))
	for _, s := range shown {
		byPayment[s.PaymentID] = s
	}

	tips := map[string]uint64{}

	out := make([]PaymentResource, len(payments))
	for i, p := range payments {
		tip, known := tips[p.Network]
		if !known {
			if tip, err = e.Tip(ctx, p.Network); err != nil {
				return nil, err
			}

			tips[p.Network] = tip
		}

		out[i].PaymentResource = p.Resource(tip)
		if s, ok := byPayment[p.ID]; ok {
			out[i].Settlement = &s
		}
	}

	return out, nil
}

// Tip returns the height of the newest block seen on a network; 0 before it was first read.
func (e *Engine) Tip(ctx context.Context, network string) (uint64, error) {
	c, _, err := e.config.Store.Cursor(ctx, network)
	return c.Tip.Height, err
}

// refundChanged applies a refund's change of state to the refunded invoice.
func (e *Engine) refundChanged(ctx context.Context, tx Tx, typ event.Type, r payout.Refund) error {
	if r.InvoiceID == "" {
		return nil
	}

	move := map[event.Type]invoicestate.RefundTransition{
		event.RefundCreated:   invoicestate.RefundPending,
		event.RefundSucceeded: invoicestate.RefundSucceeded,
		event.RefundFailed:    invoicestate.RefundFailed,
		event.RefundTakenBack: invoicestate.RefundReversed,
	}[typ]

	return e.Ingester.RefundedTx(
		ctx, tx,
		invoicestate.RefundChange{InvoiceID: r.InvoiceID, AssetID: r.AssetID, Amount: r.Amount, Move: move},
	)
}

// outputs returns the outputs that hold payments, for settlements on UTXO networks.
func (e *Engine) outputs(ctx context.Context, paymentIDs []string) (map[string]chain.Outpoint, error) {
	out := make(map[string]chain.Outpoint, len(paymentIDs))
	for _, id := range paymentIDs {
		p, err := e.config.Store.PaymentByID(ctx, id)
		if err != nil {
			return nil, err
		}

		out[id] = chain.Outpoint{TxHash: p.TxHash, Vout: p.TxIndex}
	}

	return out, nil
}
