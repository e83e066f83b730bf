package txmgr

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// rows is a transaction of a store that holds one wallet and one coin.
type rows struct {
	wallet.Tx
	wallet wallet.Wallet
	coin   wallet.Coin
	puts   int
}

func (r *rows) Wallet(context.Context, string, chain.Address) (wallet.Wallet, bool, error) {
	return r.wallet, true, nil
}

func (r *rows) PutWallet(_ context.Context, w *wallet.Wallet) error {
	r.wallet = *w
	r.puts++

	return nil
}

func (r *rows) CoinsOf(context.Context, string, []string) ([]wallet.Coin, error) {
	return []wallet.Coin{r.coin}, nil
}

func (r *rows) PutCoin(_ context.Context, c *wallet.Coin) error {
	r.coin = *c
	r.puts++

	return nil
}

// What was signed on a view of the store that is out of date must not be stored, lease or not.
func TestNonceThatWasSignedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  wallet.Kind
		nonce uint64
		next  uint64 // afterwards; 0: refused
	}{
		{"the next one", wallet.Payout, 7, 8},
		{"one that the chain counted already", wallet.Payout, 9, 10},
		{"the last one", wallet.Payout, 6, 0},
		{"an old one", wallet.Payout, 3, 0},
		{"a cancellation of the last one", wallet.Cancel, 6, 7},
	} {
		tx := &rows{wallet: wallet.Wallet{NextNonce: 7}}

		err := (&walletWorker{}).advanceNonceTx(
			t.Context(), tx, wallet.Transaction{ID: "t", Kind: c.kind}, c.nonce,
		)
		switch {
		case c.next == 0 && (fault.Code(err) != "nonce_taken" || tx.puts > 0):
			t.Errorf("%s: %v, %d rows written", c.name, err, tx.puts)
		case c.next > 0 && (err != nil || tx.wallet.NextNonce != c.next):
			t.Errorf("%s: %v, the next one is %d", c.name, err, tx.wallet.NextNonce)
		}
	}
}

func TestCoinThatWasTakenMeanwhile(t *testing.T) {
	at := chain.Outpoint{TxHash: "m", Vout: 1}
	for _, c := range []struct {
		name string
		kind wallet.Kind
		coin wallet.Coin
		code string
		puts int
	}{
		{"free", wallet.Payout, wallet.Coin{}, "", 1},
		{"held already", wallet.Payout, wallet.Coin{ReservedBy: "t"}, "", 0},
		{"reserved by another", wallet.Payout, wallet.Coin{ReservedBy: "other"}, "coin_taken", 0},
		{"spent", wallet.Payout, wallet.Coin{SpentBy: "x", SpentAt: 3}, "coin_spent", 0},
		{"of what is displaced", wallet.Cancel, wallet.Coin{ReservedBy: "object"}, "", 0},
		{"of what is not displaced", wallet.Payout, wallet.Coin{ReservedBy: "object"}, "coin_taken", 0},
	} {
		c.coin.Outpoint = at
		tx := &rows{coin: c.coin}
		of := wallet.Transaction{ID: "t", Kind: c.kind, ObjectID: "object"}

		err := (&walletWorker{}).reserveCoinsTx(t.Context(), tx, of, []chain.Outpoint{at})
		if fault.Code(err) != c.code || tx.puts != c.puts || err != nil && !errors.Is(err, fault.State) {
			t.Errorf("%s: %v, %d rows written", c.name, err, tx.puts)
		}
	}

	tx := &rows{coin: wallet.Coin{Coin: chain.Coin{Outpoint: at}}}
	unknown := []chain.Outpoint{{TxHash: "m", Vout: 2}}

	err := (&walletWorker{}).reserveCoinsTx(t.Context(), tx, wallet.Transaction{ID: "t"}, unknown)
	if fault.Code(err) != "coin_unknown" {
		t.Errorf("an output that is no coin of ours: %v", err)
	}
}

func TestCoinsOfATransactionThatIsOver(t *testing.T) {
	shared, extra := chain.Outpoint{TxHash: "m", Vout: 1}, chain.Outpoint{TxHash: "m", Vout: 2}

	attempts := []wallet.Attempt{
		{Signed: chain.Signed{TxHash: "first", Inputs: []chain.Outpoint{shared, extra}}},
		{Signed: chain.Signed{TxHash: "second", Inputs: []chain.Outpoint{shared}}},
	}
	for _, c := range []struct {
		name  string
		state wallet.State
		coin  chain.Outpoint
		by    string
		freed bool
	}{
		{"what the confirmed one spends", wallet.Confirmed, shared, "t", false},
		{"what only another attempt spends", wallet.Confirmed, extra, "t", true},
		{"of a failed one", wallet.Failed, shared, "t", true},
		{"what another one holds", wallet.Failed, shared, "other", false},
	} {
		tx := &rows{coin: wallet.Coin{Coin: chain.Coin{Outpoint: c.coin}, ReservedBy: c.by}}

		over := wallet.Transaction{ID: "t", State: c.state, TxHash: "second", Attempts: attempts}
		if err := (&walletWorker{}).releaseCoinsTx(t.Context(), tx, over); err != nil {
			t.Fatal(err)
		}

		if freed := tx.coin.ReservedBy == ""; freed != c.freed {
			t.Errorf("%s: freed %t, want %t", c.name, freed, c.freed)
		}
	}
}
