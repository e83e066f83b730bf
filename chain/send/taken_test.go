package send

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// rows is a transaction of a store that holds one wallet and one coin.
type rows struct {
	Tx
	wallet Wallet
	coin   Coin
	puts   int
}

func (r *rows) Wallet(context.Context, string, chain.Address) (Wallet, bool, error) {
	return r.wallet, true, nil
}

func (r *rows) PutWallet(_ context.Context, w *Wallet) error {
	r.wallet = *w
	r.puts++
	return nil
}

func (r *rows) CoinsOf(context.Context, string, []string) ([]Coin, error) {
	return []Coin{r.coin}, nil
}

func (r *rows) PutCoin(_ context.Context, c *Coin) error {
	r.coin = *c
	r.puts++
	return nil
}

// What was signed on a view of the store that is out of date must not be stored, lease or not.
func TestNonceThatWasSignedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  Kind
		nonce uint64
		next  uint64 // afterwards; 0: refused
	}{
		{"the next one", Payout, 7, 8},
		{"one that the chain counted already", Payout, 9, 10},
		{"the last one", Payout, 6, 0},
		{"an old one", Payout, 3, 0},
		{"a cancellation of the last one", Cancel, 6, 7},
	} {
		tx := &rows{wallet: Wallet{NextNonce: 7}}
		err := (&desk{}).takeNonceTx(t.Context(), tx, Transaction{ID: "t", Kind: c.kind}, c.nonce)
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
		kind Kind
		coin Coin
		code string
		puts int
	}{
		{"free", Payout, Coin{}, "", 1},
		{"held already", Payout, Coin{ReservedBy: "t"}, "", 0},
		{"reserved by another", Payout, Coin{ReservedBy: "other"}, "coin_taken", 0},
		{"spent", Payout, Coin{SpentBy: "x", SpentAt: 3}, "coin_spent", 0},
		{"of what is displaced", Cancel, Coin{ReservedBy: "object"}, "", 0},
		{"of what is not displaced", Payout, Coin{ReservedBy: "object"}, "coin_taken", 0},
	} {
		c.coin.Outpoint = at
		tx := &rows{coin: c.coin}
		of := Transaction{ID: "t", Kind: c.kind, ObjectID: "object"}
		err := (&desk{}).takeCoinsTx(t.Context(), tx, of, []chain.Outpoint{at})
		if fault.Code(err) != c.code || tx.puts != c.puts || err != nil && !errors.Is(err, fault.State) {
			t.Errorf("%s: %v, %d rows written", c.name, err, tx.puts)
		}
	}

	tx := &rows{coin: Coin{Coin: chain.Coin{Outpoint: at}}}
	unknown := []chain.Outpoint{{TxHash: "m", Vout: 2}}
	err := (&desk{}).takeCoinsTx(t.Context(), tx, Transaction{ID: "t"}, unknown)
	if fault.Code(err) != "coin_unknown" {
		t.Errorf("an output that is no coin of ours: %v", err)
	}
}

func TestCoinsOfATransactionThatIsOver(t *testing.T) {
	shared, extra := chain.Outpoint{TxHash: "m", Vout: 1}, chain.Outpoint{TxHash: "m", Vout: 2}
	attempts := []Attempt{
		{Signed: chain.Signed{TxHash: "first", Inputs: []chain.Outpoint{shared, extra}}},
		{Signed: chain.Signed{TxHash: "second", Inputs: []chain.Outpoint{shared}}},
	}
	for _, c := range []struct {
		name  string
		state State
		coin  chain.Outpoint
		by    string
		freed bool
	}{
		{"what the confirmed one spends", Confirmed, shared, "t", false},
		{"what only another attempt spends", Confirmed, extra, "t", true},
		{"of a failed one", Failed, shared, "t", true},
		{"what another one holds", Failed, shared, "other", false},
	} {
		tx := &rows{coin: Coin{Coin: chain.Coin{Outpoint: c.coin}, ReservedBy: c.by}}
		over := Transaction{ID: "t", State: c.state, TxHash: "second", Attempts: attempts}
		if err := (&desk{}).freeCoinsTx(t.Context(), tx, over); err != nil {
			t.Fatal(err)
		}
		if freed := tx.coin.ReservedBy == ""; freed != c.freed {
			t.Errorf("%s: freed %t, want %t", c.name, freed, c.freed)
		}
	}
}
