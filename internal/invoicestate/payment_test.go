package invoicestate

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	blockA = chain.Ref{Height: 7, Hash: "a", Time: now}
	blockB = chain.Ref{Height: 7, Hash: "b", Time: now}
)

// payment returns one in a state: a status, and for detected whether it waits in the pool, is lost
// or in a block.
func payment(state string) invoice.Payment {
	p := invoice.Payment{
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
		p.Status = invoice.Detected
	case "lost":
		p.Status, p.LostAt, p.DueAt = invoice.Detected, now.Add(-time.Hour), now.Add(23*time.Hour)
	case "block":
		p.Status, p.Block = invoice.Detected, blockA
	case "confirmed":
		p.Status, p.Block, p.ConfirmedAt, p.Late = invoice.Confirmed, blockA, now, true
		p.USDValue, p.NativeUSD = decimal.NewNullDecimal(
			decimal.NewFromInt(9),
		), decimal.NewNullDecimal(
			decimal.NewFromInt(1),
		)
	case "unpriced":
		p.Status, p.Block, p.ConfirmedAt, p.DueAt = invoice.Confirmed, blockA, now, now
	case "orphaned":
		p.Status, p.LostAt, p.DueAt = invoice.Orphaned, now.Add(-time.Hour), now.Add(23*time.Hour)
	case "dropped":
		p.Status = invoice.Dropped
	}

	return p
}

// Every move of decisions part 3 from every state: what it leads to, or the code it is refused with.
func TestPaymentMoves(t *testing.T) {
	moves := map[string]func(p *invoice.Payment) ([]event.Type, error){
		"see in pool":    func(p *invoice.Payment) ([]event.Type, error) { return Observe(p, chain.Ref{}) },
		"see in block":   func(p *invoice.Payment) ([]event.Type, error) { return Observe(p, blockA) },
		"see in another": func(p *invoice.Payment) ([]event.Type, error) { return Observe(p, blockB) },
		"move":           func(p *invoice.Payment) ([]event.Type, error) { return nil, SetBlock(p, blockB) },
		"confirm":        func(p *invoice.Payment) ([]event.Type, error) { return Confirm(p, true, now) },
		"price": func(p *invoice.Payment) ([]event.Type, error) {
			return Price(p, usdPrice(3), usdPrice(1))
		},
		"orphan": func(p *invoice.Payment) ([]event.Type, error) { return Orphan(p, now) },
		"lose":   func(p *invoice.Payment) ([]event.Type, error) { return nil, MarkLost(p, now) },
		"drop":   func(p *invoice.Payment) ([]event.Type, error) { return Drop(p) },
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
		status    invoice.PaymentStatus
		block     string
		published []event.Type
		refused   string
	}

	ok := func(s invoice.PaymentStatus, block string, published ...event.Type) result {
		return result{status: s, block: block, published: published}
	}
	no := func(code string) result { return result{refused: code} }

	want := map[string][]result{ // in the order of states
		"see in pool": {
			ok(invoice.Detected, ""),
			ok(invoice.Detected, ""),
			ok(invoice.Detected, "a"),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Detected, "", seen),
			ok(invoice.Detected, "", seen),
		},
		"see in block": {
			ok(invoice.Detected, "a"),
			ok(invoice.Detected, "a"),
			ok(invoice.Detected, "a"),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Detected, "a", seen),
			ok(invoice.Detected, "a", seen),
		},
		"see in another": {
			ok(invoice.Detected, "b"),
			ok(invoice.Detected, "b"),
			ok(invoice.Detected, "b"),
			no("payment_confirmed"),
			no("payment_confirmed"),
			ok(invoice.Detected, "b", seen),
			ok(invoice.Detected, "b", seen),
		},
		"move": {
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			ok(invoice.Confirmed, "b"),
			ok(invoice.Confirmed, "b"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
		},
		"confirm": {
			no("payment_not_in_block"),
			no("payment_not_in_block"),
			ok(invoice.Confirmed, "a", final),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Confirmed, "a"),
			no("payment_not_detected"),
			no("payment_not_detected"),
		},
		"price": {
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
			ok(invoice.Confirmed, "a"),
			ok(invoice.Confirmed, "a", priced),
			no("payment_not_confirmed"),
			no("payment_not_confirmed"),
		},
		"orphan": {
			no("payment_not_in_block"),
			no("payment_not_in_block"),
			ok(invoice.Orphaned, "", orphaned, lost),
			ok(invoice.Orphaned, "", orphaned, lost),
			ok(invoice.Orphaned, "", orphaned, lost),
			ok(invoice.Orphaned, ""),
			no("payment_dropped"),
		},
		"lose": {
			ok(invoice.Detected, ""),
			ok(invoice.Detected, ""),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
			no("payment_not_waiting"),
		},
		"drop": {
			ok(invoice.Dropped, "", dropped, lost),
			ok(invoice.Dropped, "", dropped, lost),
			no("payment_in_block"),
			no("payment_in_block"),
			no("payment_in_block"),
			ok(invoice.Dropped, "", dropped),
			ok(invoice.Dropped, ""),
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
	if _, err := Orphan(&p, now); err != nil {
		t.Fatal(err)
	}

	if p.USDValue.Valid || p.NativeUSD.Valid || p.Late || !p.ConfirmedAt.IsZero() || !p.LostAt.Equal(now) ||
		!p.DueAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("orphaned: %+v", p)
	}

	if _, err := Observe(&p, blockB); err != nil || !p.LostAt.IsZero() || !p.DueAt.IsZero() {
		t.Errorf("found again: %+v, %v", p, err)
	}

	if p.Credit.String() != "10" || p.Rate.String() != "2" {
		t.Errorf("the credit of first sight changed: %+v", p)
	}

	lost := payment("pool")
	if err := MarkLost(&lost,
		now,
	); err != nil || !lost.LostAt.Equal(now) ||
		!lost.DueAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("lost: %+v, %v", lost, err)
	}

	if _, err := Observe(&lost, chain.Ref{}); err != nil || !lost.LostAt.IsZero() || !lost.DueAt.IsZero() {
		t.Errorf("back in the pool: %+v, %v", lost, err)
	}

	sim := invoice.Payment{Status: invoice.Detected, Simulated: true, DepositAddressID: "d"}
	if published, err := Confirm(&sim,
		false, now,
	); err != nil ||
		!slices.Equal(published, []event.Type{event.DepositPaymentConfirmed}) {
		t.Errorf("a simulated payment needs no block: %v, %v", published, err)
	}

	if got := (invoice.Payment{DepositAddressID: "d", Status: invoice.Orphaned}); true {
		if published, _ := Observe(&got,
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

	published, err := Attach(&p, transfer, blockB)
	if err != nil || p.TxHash != "x" || p.TxIndex != 3 || p.FromAddress != "f" ||
		p.Amount != chain.Units(4) ||
		p.Credit.String() != "8" ||
		p.Block != blockB {
		t.Errorf("attached: %+v, %v", p, err)
	}

	if !slices.Equal(published, []event.Type{event.PaymentTransactionAttached}) {
		t.Errorf("published %v", published)
	}

	if published, err := Attach(&p, transfer, blockB); published != nil || err != nil {
		t.Errorf("attached twice: %v, %v", published, err)
	}

	other := transfer

	other.TxHash = "y"
	if _, err := Attach(&p, other, blockB); fault.Code(err) != "payment_attached" {
		t.Errorf("attached to another transaction: %v", err)
	}

	final := payment("confirmed")

	final.TxHash = ""
	if _, err := Attach(&final,
		transfer, blockA,
	); fault.Code(err) != "payment_confirmed" ||
		final.TxHash != "" {
		t.Errorf("a confirmed amount changed: %v", err)
	}

	transfer.Amount = chain.Units(5)
	if _, err := Attach(&final,
		transfer, blockA,
	); err != nil || final.TxHash != "x" ||
		final.Status != invoice.Confirmed {
		t.Errorf("attached to a confirmed payment: %+v, %v", final, err)
	}
}

func usdPrice(whole int64) decimal.NullDecimal {
	return decimal.NewNullDecimal(decimal.NewFromInt(whole))
}

// A payment is worth what its asset costs at confirmation, also where the native coin, which its fee needs, has no
// price yet. It is due until both are there.
func TestAPaymentKeepsThePriceThatItHas(t *testing.T) {
	none := decimal.NullDecimal{}
	p := paying("1", 200)
	p.DueAt = now

	for _, c := range []struct {
		usd, native decimal.NullDecimal
		value       string
		valued      bool
	}{
		{none, usdPrice(7), "null null", false},
		{usdPrice(3), none, "6 null", false},
		{usdPrice(5), none, "6 null", false},
		{none, usdPrice(2), "6 2", true},
		{usdPrice(9), usdPrice(9), "6 2", false},
	} {
		types, err := Price(&p, c.usd, c.native)
		if err != nil {
			t.Fatal(err)
		}

		got := shownPrice(p.USDValue) + " " + shownPrice(p.NativeUSD)
		if got != c.value || (len(types) == 1) != c.valued || p.DueAt.IsZero() != p.NativeUSD.Valid {
			t.Errorf(
				"with %v and %v: %s, events %v, due at %v; want %s",
				c.usd,
				c.native,
				got,
				types,
				p.DueAt,
				c.value,
			)
		}
	}
}

func shownPrice(d decimal.NullDecimal) string {
	if !d.Valid {
		return "null"
	}

	return d.Decimal.String()
}
