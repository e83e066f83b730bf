package txmgr

import (
	"bytes"
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// What a token took without a log of several transfers in a block is split by what each brought: together they lost
// exactly that, none more than it brought, and of one that is too small for a fee nothing was taken.
func TestWhatATokenTookIsSplitByWhatEachBrought(t *testing.T) {
	to := chain.Holding{Address: "master", AssetID: "token"}

	for _, c := range []struct {
		name    string
		brought []uint64
		missing uint64
		want    []uint64
	}{
		{"nothing", []uint64{400, 200}, 0, []uint64{0, 0}},
		{"a share", []uint64{400, 200}, 6, []uint64{4, 2}},
		{"one is too small, and the last", []uint64{126_780_000, 1}, 1_267_800, []uint64{1_267_800, 0}},
		{"one is too small, and the first", []uint64{1, 126_780_000}, 1_267_800, []uint64{0, 1_267_800}},
		{"as large", []uint64{150, 150, 1}, 2, []uint64{2, 0, 0}},
		{"more than the largest has", []uint64{1, 1, 1}, 2, []uint64{1, 1, 0}},
		{"all", []uint64{1, 2, 3}, 6, []uint64{1, 2, 3}},
		{"more than all", []uint64{1, 2, 3}, 7, []uint64{1, 2, 3}},
		{"what others took", nil, 7, nil},
	} {
		hashes := []string{"a", "b", "c"}
		block := chain.Block{Transfers: []chain.Transfer{
			{TxHash: "a", To: "master", AssetID: "other", Amount: chain.Units(1000)},
			{TxHash: "b", To: "stranger", AssetID: "token", Amount: chain.Units(1000)},
		}}

		for i, amount := range c.brought {
			block.Transfers = append(block.Transfers, chain.Transfer{
				TxHash:  hashes[i],
				To:      to.Address,
				AssetID: to.AssetID,
				Amount:  chain.Units(amount),
			})
		}

		for i, want := range c.want {
			if got := cutOf(block, to, hashes[i], chain.Units(c.missing)); got != chain.Units(want) {
				t.Errorf("%s: %s of transfer %d was taken, want %d", c.name, got, i, want)
			}
		}
	}
}

// Logs of more than there can be are no sums: nothing is taken by them.
func TestNothingIsTakenByLogsThatAreNoSums(t *testing.T) {
	most, err := chain.AmountFromBytes(bytes.Repeat([]byte{0xff}, 32))
	if err != nil {
		t.Fatal(err)
	}

	to := chain.Holding{Address: "master", AssetID: "token"}
	block := chain.Block{Ref: chain.Ref{Height: 7}, Parent: "6", Transfers: []chain.Transfer{
		{TxHash: "a", To: to.Address, AssetID: to.AssetID, Amount: most},
		{TxHash: "b", To: to.Address, AssetID: to.AssetID, Amount: most},
	}}

	missing, err := shortfall(t.Context(), fixedBalances{chain.Units(5)}, block, to)
	if err != nil || !missing.IsZero() {
		t.Fatalf("%s is missing, %v", missing, err)
	}

	if got := cutOf(block, to, "a", missing); !got.IsZero() {
		t.Errorf("%s was taken", got)
	}
}

// fixedBalances answers the same for any holding at any block.
type fixedBalances []chain.Amount

func (b fixedBalances) Balances(context.Context, chain.Ref, []chain.Holding) ([]chain.Amount, error) {
	return b, nil
}
