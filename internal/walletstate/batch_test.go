package walletstate

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// queued returns unsigned payouts of amounts 1, 2, 3 … whose fee may be as given.
func queued(maxFees ...uint64) []wallet.Transaction {
	var rows []wallet.Transaction

	for i, most := range maxFees {
		id := strconv.Itoa(i)
		rows = append(rows, wallet.Transaction{
			ID:        id,
			ObjectID:  "payout " + id,
			Network:   "net",
			Kind:      wallet.Payout,
			State:     wallet.Queued,
			CreatedAt: at,
			DueAt:     at,
			Order: chain.Order{
				From:   chain.Party{Address: "wallet"},
				MaxFee: chain.Units(most),
				Outputs: []chain.Output{
					{To: chain.Address("to " + id), AssetID: "coin", Amount: chain.Units(uint64(1 + i))},
				},
			},
		})
	}

	return rows
}

func TestMerge(t *testing.T) {
	rows := queued(100, 70, 200)
	before := rows[0]

	carrier := rows[0]
	if err := Merge(&carrier, rows[1:]); err != nil {
		t.Fatal(err)
	}

	want := []chain.Output{rows[0].Order.Outputs[0], rows[1].Order.Outputs[0], rows[2].Order.Outputs[0]}
	if !slices.Equal(carrier.Order.Outputs, want) ||
		!slices.Equal(carrier.BatchMembers, []string{"1", "2"}) ||
		carrier.State != wallet.Queued {
		t.Errorf("merged as %+v", carrier)
	}

	if carrier.Order.MaxFee != chain.Units(210) {
		t.Errorf("three of which one may cost 70 may cost %s together, want 210", carrier.Order.MaxFee)
	}

	if d := cmp.Diff(before, rows[0], amounts); d != "" {
		t.Errorf("an earlier copy was changed:\n%s", d)
	}

	if !slices.Equal(OwnOutputs(carrier), want[:1]) {
		t.Errorf("its own outputs are %+v", OwnOutputs(carrier))
	}

	for name, spoil := range map[string]func(rows []wallet.Transaction){
		"it is signed itself":           func(rows []wallet.Transaction) { rows[0].State = wallet.Signed },
		"it carries others already":     func(rows []wallet.Transaction) { rows[0].BatchMembers = []string{"9"} },
		"it is a fee":                   func(rows []wallet.Transaction) { rows[0].Kind = wallet.Fee },
		"it takes the fee out":          func(rows []wallet.Transaction) { rows[0].Order.SubtractFee = true },
		"one is canceled":               func(rows []wallet.Transaction) { rows[1].State = wallet.Failed },
		"one is signed":                 func(rows []wallet.Transaction) { rows[1].State = wallet.Signed },
		"one is carried":                func(rows []wallet.Transaction) { rows[1].BatchedBy = "9" },
		"one carries others":            func(rows []wallet.Transaction) { rows[1].BatchMembers = []string{"9"} },
		"one is a sweep":                func(rows []wallet.Transaction) { rows[2].Kind = wallet.Sweep },
		"one is paid by another wallet": func(rows []wallet.Transaction) { rows[2].Order.From.Address = "other" },
		"one is of another network":     func(rows []wallet.Transaction) { rows[2].Network = "other" },
		"one is of another account":     func(rows []wallet.Transaction) { rows[2].Owner.AccountID = "other" },
		"one is in another asset":       func(rows []wallet.Transaction) { rows[2].Order.Outputs[0].AssetID = "token" },
		"one has another fee payer":     func(rows []wallet.Transaction) { rows[2].Order.FeePayer = &chain.Party{} },
		"one names its coins": func(rows []wallet.Transaction) {
			rows[2].Order.Coins = make([]chain.Coin, 1)
		},
		"one has two outputs": func(rows []wallet.Transaction) {
			rows[2].Order.Outputs = append(rows[2].Order.Outputs, chain.Output{})
		},
		"one comes twice": func(rows []wallet.Transaction) { rows[2] = rows[1] },
		"it comes itself": func(rows []wallet.Transaction) { rows[2] = rows[0] },
	} {
		rows := queued(100, 70, 200)
		spoil(rows)

		before := rows[0]
		if err := Merge(&rows[0], rows[1:]); !errors.Is(err, fault.State) {
			t.Errorf("%s: error %v, want fault.State", name, err)
		} else if d := cmp.Diff(before, rows[0], amounts); d != "" {
			t.Errorf("%s: refused, and the record changed:\n%s", name, d)
		}
	}

	if err := Merge(&rows[0], nil); !errors.Is(err, fault.State) {
		t.Errorf("carrying nothing: %v", err)
	}
}

// Every move of the carrier is made by what it carries, and legal as a move of a payout's transaction.
func TestCarriedMovesWithItsCarrier(t *testing.T) {
	rows := queued(100, 100, 100)

	carrier, carried := rows[0], rows[1:]
	if err := Merge(&carrier, carried); err != nil {
		t.Fatal(err)
	}

	five := chain.TxStatus{
		Block:     chain.Ref{Height: 5, Hash: "five", Time: at},
		Fee:       chain.Units(20),
		Transfers: []chain.Transfer{{TxHash: "a"}},
	}
	six := chain.TxStatus{Block: chain.Ref{Height: 6, Hash: "six", Time: at}, Fee: chain.Units(31)}

	for _, step := range []struct {
		name   string
		move   func(*wallet.Transaction) error
		state  wallet.State
		hash   string
		fees   [3]uint64
		failed string
	}{
		{
			"sign",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("a", 7)) },
			wallet.Signed,
			"a",
			[3]uint64{},
			"",
		},
		{
			"taken",
			func(t *wallet.Transaction) error { return RecordAccepted(t, "a", at) },
			wallet.Broadcast,
			"a",
			[3]uint64{},
			"",
		},
		{
			"replace",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("b", 7)) },
			wallet.Broadcast,
			"b",
			[3]uint64{},
			"",
		},
		{
			"include the first",
			func(t *wallet.Transaction) error { return Include(t, "a", five) },
			wallet.Included,
			"a",
			[3]uint64{7, 7, 6},
			"",
		},
		{"retract", Retract, wallet.Broadcast, "b", [3]uint64{}, ""},
		{
			"include",
			func(t *wallet.Transaction) error { return Include(t, "b", five) },
			wallet.Included,
			"b",
			[3]uint64{7, 7, 6},
			"",
		},
		{
			"include elsewhere",
			func(t *wallet.Transaction) error { return Include(t, "b", six) },
			wallet.Included,
			"b",
			[3]uint64{11, 10, 10},
			"",
		},
		{"confirm", Confirm, wallet.Confirmed, "b", [3]uint64{11, 10, 10}, ""},
		{"retract after all", Retract, wallet.Broadcast, "b", [3]uint64{}, ""},
		{
			"displaced",
			func(t *wallet.Transaction) error { return FailAgainst(t, wallet.Conflict{TxHash: "x", Own: true}) },
			wallet.Failed,
			"b",
			[3]uint64{},
			wallet.FailConflict,
		},
	} {
		if err := step.move(&carrier); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}

		for i := range carried {
			if err := JoinBatch(&carried[i], carrier); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}

			again := carried[i]
			if err := JoinBatch(&again, carrier); err != nil || cmp.Diff(carried[i], again, amounts) != "" {
				t.Errorf("%s, a second time: %v, %+v", step.name, err, again)
			}
		}

		for i, row := range append([]wallet.Transaction{carrier}, carried...) {
			if row.State != step.state || row.TxHash != step.hash || row.Block != carrier.Block ||
				row.Failure != step.failed || row.Conflict != carrier.Conflict ||
				row.Nonce != 7 {
				t.Errorf("%s: row %d is %+v", step.name, i, row)
			}

			if OwnFee(row) != chain.Units(step.fees[i]) {
				t.Errorf("%s: row %d pays %s of the fee, want %d", step.name, i, OwnFee(row), step.fees[i])
			}

			if i > 0 &&
				(len(row.Attempts) > 0 || row.Transfers != nil || !row.DueAt.IsZero() ||
					row.BatchedBy != carrier.ID || len(row.Order.Outputs) != 1) {
				t.Errorf("%s: carried as %+v", step.name, row)
			}
		}
	}
}

func TestRideIsRefused(t *testing.T) {
	fresh := func() (carrier, row wallet.Transaction) {
		rows := queued(100, 100)
		if err := Merge(&rows[0], rows[1:]); err != nil {
			t.Fatal(err)
		}

		if err := Sign(&rows[0], attemptOf("a", 7)); err != nil {
			t.Fatal(err)
		}

		return rows[0], rows[1]
	}
	for name, spoil := range map[string]func(carrier, row *wallet.Transaction){
		"a canceled one": func(_, row *wallet.Transaction) { row.State = wallet.Failed },
		"a signed one":   func(_, row *wallet.Transaction) { row.State = wallet.Signed },
		"one that another carries": func(_, row *wallet.Transaction) {
			row.BatchedBy, row.State = "9", wallet.Signed
		},
		"one that is not carried": func(carrier, _ *wallet.Transaction) {
			carrier.BatchMembers = []string{"9"}
		},
		"itself":                             func(carrier, row *wallet.Transaction) { *row = *carrier },
		"a queued one after the first bytes": func(carrier, _ *wallet.Transaction) { carrier.State = wallet.Broadcast },
	} {
		carrier, row := fresh()
		spoil(&carrier, &row)

		before := row
		if err := JoinBatch(&row, carrier); !errors.Is(err, fault.State) {
			t.Errorf("%s: error %v, want fault.State", name, err)
		} else if d := cmp.Diff(before, row, amounts); d != "" {
			t.Errorf("%s: refused, and the record changed:\n%s", name, d)
		}
	}
	// What is carried makes no move of its own.
	carrier, row := fresh()
	if err := JoinBatch(&row, carrier); err != nil {
		t.Fatal(err)
	}

	for name, m := range map[string]move{
		"sign":  func(t *wallet.Transaction) error { return Sign(t, attemptOf("c", 7)) },
		"taken": func(t *wallet.Transaction) error { return RecordAccepted(t, "a", at) },
		"include": func(t *wallet.Transaction) error {
			return Include(t, "a", chain.TxStatus{Block: chain.Ref{Height: 1, Hash: "one"}})
		},
		"confirm": Confirm,
		"retract": Retract,
		"fail":    fail(wallet.FailConflict),
		"cancel":  fail(wallet.FailCanceled),
	} {
		for _, s := range []wallet.State{wallet.Signed, wallet.Broadcast, wallet.Included, wallet.Confirmed} {
			alone := row

			alone.State = s
			if err := m(&alone); !errors.Is(err, fault.State) || alone.State != s {
				t.Errorf("%s of a carried %s one: %v, it is %s", name, s, err, alone.State)
			}
		}
	}
}

// Shares are equal to the base unit, the older ones not the smaller ones, add up to the fee, and
// exceed no payout's maximum when the fee does not exceed the batch's.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SliceOfN(rapid.Uint64Range(1, 1<<40), 2, 60).Draw(t, "most")
		rows := queued(most...)

		carrier := rows[0]
		if err := Merge(&carrier, rows[1:]); err != nil {
			t.Fatal(err)
		}

		limit, _ := carrier.Order.MaxFee.Uint64()
		fee := chain.Units(rapid.Uint64Range(0, limit).Draw(t, "fee"))
		signed := attemptOf("a", 0)
		signed.Signed.MaxFee, signed.Signed.Outputs = fee, carrier.Order.Outputs

		var sum chain.Amount

		last := fee

		for i, row := range rows {
			outputs, share := BatchShare(carrier, signed, row.ID)
			if !slices.Equal(outputs, row.Order.Outputs) {
				t.Fatalf("payout %d is paid %+v", i, outputs)
			}

			if row.Order.MaxFee.Less(share) {
				t.Fatalf(
					"payout %d of %d pays %s of %s, it allows %s",
					i, len(rows), share, fee, row.Order.MaxFee,
				)
			}

			if last.Less(share) || i > 1 && last.SubFloor(share).Cmp(chain.Units(1)) > 0 {
				t.Fatalf("payout %d pays %s, the one before it %s", i, share, last)
			}

			sum, last = sum.Add(share), share
		}

		if sum != fee {
			t.Fatalf("the shares of %s add up to %s", fee, sum)
		}

		if outputs, share := BatchShare(carrier, signed, "somebody else"); outputs != nil || !share.IsZero() {
			t.Fatalf("somebody else is paid %+v for %s", outputs, share)
		}
	})
}
