package auditor

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// What left an address by a token's transfer is what was ordered, and what its logs say beyond it only as far as they
// say that the token took it, or that it came back.
func TestWhatATokenTookOfItsSender(t *testing.T) {
	moved := func(from, to chain.Address, n uint64) chain.Transfer {
		return chain.Transfer{From: from, To: to, AssetID: "usd", Amount: chain.Units(n)}
	}

	most, err := chain.ParseAmount(
		"115792089237316195423570985008687907853269984665640564039457584007913129639935",
	)
	if err != nil {
		t.Fatal(err)
	}

	huge := moved("us", "shop", 0)
	huge.Amount = most

	for name, c := range map[string]struct {
		logs []chain.Transfer
		want uint64
	}{
		"nothing is logged":             {nil, 100},
		"as ordered":                    {[]chain.Transfer{moved("us", "shop", 100)}, 100},
		"a fee goes elsewhere":          {[]chain.Transfer{moved("us", "shop", 99), moved("us", "token", 1)}, 100},
		"a fee is added":                {[]chain.Transfer{moved("us", "shop", 100), moved("us", "token", 1)}, 101},
		"half comes back":               {[]chain.Transfer{moved("us", "shop", 100), moved("shop", "us", 50)}, 100},
		"more is taken, and comes back": {[]chain.Transfer{moved("shop", "us", 50), moved("us", "shop", 150)}, 150},
		"logged twice, moved once":      {[]chain.Transfer{moved("us", "shop", 100), moved("us", "shop", 100)}, 100},
		"no sums":                       {[]chain.Transfer{huge, huge, moved("shop", "us", 50)}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			out := chain.Output{To: "shop", AssetID: "usd", Amount: chain.Units(100)}
			tx := wallet.Transaction{Transfers: c.logs}
			tx.Order.From.Address, tx.Order.Outputs = "us", []chain.Output{out}

			l := ledger{network: chain.Network{Assets: []chain.Asset{{ID: "usd", Contract: "token"}}}}
			if got := l.sent(tx, out); got != chain.Units(c.want) {
				t.Errorf("%s left, want %d", got, c.want)
			}
		})
	}
}

// A delegation of stake and its end cost their sender the network fee, and move nothing that a balance shows.
func TestDelegationsTakeTheirFeeAlone(t *testing.T) {
	for _, asset := range []string{chaindata.DelegateEnergy, chaindata.UndelegateEnergy} {
		tx := wallet.Transaction{
			ID:     "t",
			Kind:   wallet.Delegate,
			State:  wallet.Confirmed,
			TxHash: "h",
			Block:  chain.Ref{Height: 1, Hash: "b"},
			Fee:    chain.Units(3),
		}
		tx.Order.From.Address = "master"
		tx.Attempts = []wallet.Attempt{{Signed: chain.Signed{
			TxHash:  "h",
			Outputs: []chain.Output{{To: "deposit", AssetID: asset, Amount: chain.Units(100)}},
		}}}

		l := newLedger(chain.Network{Assets: []chain.Asset{{ID: "trx", Kind: chain.Native}}}, nil)
		l.transaction(tx, nil, 1)

		if len(l.balances) != 1 || l.balanceOf("master", "trx").out != chain.Units(3) {
			t.Errorf(
				"%s: the ledger has %d balances, %s left",
				asset,
				len(l.balances),
				l.balanceOf("master", "trx").out,
			)
		}
	}
}

// What a merchant took from a master wallet by hand, less the change, is not missing there.
func TestWhatWasTakenByHandIsNotMissing(t *testing.T) {
	const master, native = "master", "btc"

	row := wallet.Outgoing{
		Address:  master,
		TxHash:   "by hand",
		Outpoint: chain.Outpoint{TxHash: "sweep"},
		Transfers: []chain.Transfer{
			{To: "elsewhere", AssetID: native, Amount: chain.Units(19)},
			{To: master, AssetID: native, Amount: chain.Units(40)},
		},
	}

	for found, missing := range map[uint64]bool{79: true, 80: false, 81: false} {
		n := chain.Network{Assets: []chain.Asset{{ID: native, Kind: chain.Native}}}
		a := &auditor{network: n, ledger: newLedger(n, map[chain.Address]bool{master: true})}
		a.masters = map[chain.Address]event.Owner{master: {}}
		a.ledger.balanceOf(master, native).in = chain.Units(100)
		a.ledger.foreign(row, chain.Coin{Amount: chain.Units(60)})
		a.ledger.giveBack(row)

		a.compare(chain.Holding{Address: master, AssetID: native}, chain.Units(found), chain.Amount{})

		if got := len(a.out.Differences) > 0; got != missing {
			t.Errorf("of %d base units the audit finds %+v", found, a.out.Differences)
		}

		if outside := a.out.Wallets[0].Outside; !outside.IsZero() {
			t.Errorf("of %d base units %s are from elsewhere", found, outside)
		}
	}
}
