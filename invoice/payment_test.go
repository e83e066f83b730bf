package invoice

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	blockA = chain.Ref{Height: 7, Hash: "a", Time: now}
	blockB = chain.Ref{Height: 7, Hash: "b", Time: now}
)

// payment returns one in a state: a status, and for detected whether it waits in the pool, is lost
// or in a block.
func payment(state string) Payment {
	p := Payment{
		ID:        "p",
		InvoiceID: "i",
		Amount:    chain.Units(5),
		Decimals:  0,
		Rate:      decimal.NewFromInt(2),
		Credit:    decimal.NewFromInt(10),
		TxHash:    "t",
	}

	switch state {
	case "pool":
		p.Status = Detected
	case "lost":
		p.Status, p.LostAt, p.DueAt = Detected, now.Add(-time.Hour), now.Add(23*time.Hour)
	case "block":
		p.Status, p.Block = Detected, blockA
	case "confirmed":
		p.Status, p.Block, p.ConfirmedAt, p.Late = Confirmed, blockA, now, true
		p.USDValue, p.NativeUSD = decimal.NewNullDecimal(
			decimal.NewFromInt(9),
		), decimal.NewNullDecimal(
			decimal.NewFromInt(1),
		)
	case "unpriced":
		p.Status, p.Block, p.ConfirmedAt, p.DueAt = Confirmed, blockA, now, now
	case "orphaned":
		p.Status, p.LostAt, p.DueAt = Orphaned, now.Add(-time.Hour), now.Add(23*time.Hour)
	case "dropped":
		p.Status = Dropped
	}

	return p
}

// Every move of decisions part 3 from every state: what it leads to, or the code it is refused with.
func TestPaymentMoves(t *testing.T) {
	moves := map[string]func(p *Payment) ([]event.Type, error){
		"see in pool":    func(p *Payment) ([]event.Type, error) { return p.Observe(chain.Ref{}) },
		"see in block":   func(p *Payment) ([]event.Type, error) { return p.Observe(blockA) },
		"see in another": func(p *Payment) ([]event.Type, error) { return p.Observe(blockB) },
		"move":           func(p *Payment) ([]event.Type, error) { return nil, p.SetBlock(blockB) },
		"confirm":        func(p *Payment) ([]event.Type, error) { return p.Confirm(true, now) },
		"price": func(p *Payment) ([]event.Type, error) {
			return p.Price(
				decimal.NewFromInt(3), decimal.NewFromInt(1),
			)
		},
		"orphan": func(p *Payment) ([]event.Type, error) { return p.Orphan(now) },
		"lose":   func(p *Payment) ([]event.Type, error) { return nil, p.MarkLost(now) },
		"drop":   func(p *Payment) ([]event.Type, error) { return p.Drop() },
	}
	states := []string{"pool", "lost", "block", "confirmed", "unpriced", "orphaned", "dropped"}

	const (
		seen     = event.InvoicePaymentDetected
		final    = event.InvoicePaymentConfirmed
		orphaned = event.PaymentOrphaned
		dropped  = event.PaymentDropped
		lost     = event.PaymentLost
		priced   = event.PaymentValued
	)

	type result struct {
		status    PaymentStatus
		block     string
		published []event.Type
		refused   string
	}

	ok := func(s PaymentStatus, block string, published ...event.Type) result {
		return result{status: s, block: block, published: published}
	}
	no := func(code string) result { return result{refused: code} }

	want := map[string][]result{ // in the order of states
		"see in pool": {
			ok(Detected, ""),
			ok(Detected, ""),
			ok(Detected, "a"),
			ok(Confirmed, "a"),
			ok(Confirmed, "a"),
			ok(Detected, "", seen),
			ok(Detected, "", seen),
		},
		"see in block": {
			ok(Detected, "a"),
			ok(Detected, "a"),
			ok(Detected, "a"),
			ok(Confirmed, "a"),
			ok(Confirmed, "a"),
			ok(Detected, "a", seen),
			ok(Detected, "a", seen),
		},
		"see in another": {
			ok(Detected, "b"),
			ok(Detected, "b"),
			ok(Detected, "b"),
			no("payment_confirmed"),
			no("payment_confirmed"),
			ok(Detected, "b", seen),
			ok(Detected, "b", seen),
		},
		"move": {
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			ok(Confirmed, "b"),
			ok(Confirmed, "b"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
		},
		"confirm": {
			no("payment_not_in_block"),
			no("payment_not_in_block"),
			ok(Confirmed, "a", final),
			ok(Confirmed, "a"),
			ok(Confirmed, "a"),
			no("payment_not_detected"),
			no("payment_not_detected"),
		},
		"price": {
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			ok(Confirmed, "a"),
			ok(Confirmed, "a", priced),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
		},
		"orphan": {
			no("payment_not_in_block"),
			no("payment_not_in_block"),
			ok(Orphaned, "", orphaned, lost),
			ok(Orphaned, "", orphaned, lost),
			ok(Orphaned, "", orphaned, lost),
			ok(Orphaned, ""),
			no("payment_dropped"),
		},
		"lose": {
			ok(Detected, ""),
			ok(Detected, ""),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
		},
		"drop": {
			ok(Dropped, "", dropped, lost),
			ok(Dropped, "", dropped, lost),
			no("payment_in_block"),
			no("payment_in_block"),
			no("payment_in_block"),
			ok(Dropped, "", dropped),
			ok(Dropped, ""),
		},
	}
	for name, move := range moves {
		if len(want[name]) != len(states) {
			t.Fatalf("%s: %d results for %d states", name, len(want[name]), len(states))
		}

		for i, state := range states {
			p, w := payment(state), want[name][i]
			before := p

			published, err := move(&p)
			if w.refused != "" {
				if !errors.Is(err, fault.State) || fault.Code(err) != w.refused || p != before ||
					published != nil {
					t.Errorf(
						"%s from %s: error %v, record %+v; want it refused with %s",
						name, state, err, p, w.refused,
					)
				}

				continue
			}

			if err != nil || p.Status != w.status || p.Block.Hash != w.block ||
				!slices.Equal(published, w.published) {
				t.Errorf(
					"%s from %s: %s in block %q, published %v, error %v; want %+v",
					name, state, p.Status, p.Block.Hash, published, err, w,
				)
			}
			// The same fact again changes nothing.
			after := p
			if published, err := move(&p); err != nil || p != after || published != nil {
				t.Errorf(
					"%s twice from %s: %+v after %+v, published %v, error %v",
					name, state, p, after, published, err,
				)
			}
		}
	}
}

func TestPaymentMovesKeepTheRecordWhole(t *testing.T) {
	p := payment("confirmed")
	if _, err := p.Orphan(now); err != nil {
		t.Fatal(err)
	}

	if p.USDValue.Valid || p.NativeUSD.Valid || p.Late || !p.ConfirmedAt.IsZero() || !p.LostAt.Equal(now) ||
		!p.DueAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("orphaned: %+v", p)
	}

	if _, err := p.Observe(blockB); err != nil || !p.LostAt.IsZero() || !p.DueAt.IsZero() {
		t.Errorf("found again: %+v, %v", p, err)
	}

	if p.Credit.String() != "10" || p.Rate.String() != "2" {
		t.Errorf("the credit of first sight changed: %+v", p)
	}

	lost := payment("pool")
	if err := lost.MarkLost(
		now,
	); err != nil || !lost.LostAt.Equal(now) ||
		!lost.DueAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("lost: %+v, %v", lost, err)
	}

	if _, err := lost.Observe(chain.Ref{}); err != nil || !lost.LostAt.IsZero() || !lost.DueAt.IsZero() {
		t.Errorf("back in the pool: %+v, %v", lost, err)
	}

	sim := Payment{Status: Detected, Simulated: true, DepositAddressID: "d"}
	if published, err := sim.Confirm(
		false, now,
	); err != nil ||
		!slices.Equal(published, []event.Type{event.DepositPaymentConfirmed}) {
		t.Errorf("a simulated payment needs no block: %v, %v", published, err)
	}

	if got := (Payment{DepositAddressID: "d", Status: Orphaned}); true {
		if published, _ := got.Observe(
			blockA,
		); !slices.Equal(
			published, []event.Type{event.DepositPaymentDetected},
		) {
			t.Errorf("a deposit's payment tells %v", published)
		}
	}
}

func TestAttach(t *testing.T) {
	transfer := chain.Transfer{TxHash: "x", Index: 3, From: "f", Amount: chain.Units(4)}
	p := payment("block")
	p.TxHash = ""

	published, err := p.Attach(transfer, blockB)
	if err != nil || p.TxHash != "x" || p.TxIndex != 3 || p.FromAddress != "f" ||
		p.Amount != chain.Units(4) ||
		p.Credit.String() != "8" ||
		p.Block != blockB {
		t.Errorf("attached: %+v, %v", p, err)
	}

	if !slices.Equal(published, []event.Type{event.PaymentTransactionAttached}) {
		t.Errorf("published %v", published)
	}

	if published, err := p.Attach(transfer, blockB); published != nil || err != nil {
		t.Errorf("attached twice: %v, %v", published, err)
	}

	other := transfer

	other.TxHash = "y"
	if _, err := p.Attach(other, blockB); fault.Code(err) != "payment_attached" {
		t.Errorf("attached to another transaction: %v", err)
	}

	final := payment("confirmed")

	final.TxHash = ""
	if _, err := final.Attach(
		transfer, blockA,
	); fault.Code(err) != "payment_confirmed" ||
		final.TxHash != "" {
		t.Errorf("a confirmed amount changed: %v", err)
	}

	transfer.Amount = chain.Units(5)
	if _, err := final.Attach(
		transfer, blockA,
	); err != nil || final.TxHash != "x" ||
		final.Status != Confirmed {
		t.Errorf("attached to a confirmed payment: %+v, %v", final, err)
	}
}
