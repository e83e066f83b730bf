package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// spending is a merchant of a network of outputs whose keys somebody else has too.
type spending struct {
	t       *testing.T
	network *sim.UTXO
	engine  *Engine
	owner   event.Owner
	index   uint32
}

func newSpending(t *testing.T, settings account.Settings) *spending {
	t.Helper()

	s := &spending{t: t, network: sim.NewUTXO(sim.UTXOConfig{})}
	s.engine = newEngine(t, map[string]string{"BTC/USD": "60000", "BTC/EUR": "54000"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{s.network},
	})

	made, err := s.engine.Accounts.CreateAccount(t.Context(), settings)
	s.must(err)

	s.owner, s.index = event.Owner{AccountID: made.ID, Livemode: s.network.Network().Livemode}, made.Index

	return s
}

func (s *spending) must(err error) {
	s.t.Helper()

	if err != nil {
		s.t.Fatal(err)
	}
}

// deposited returns the settlement of what a payer paid to a new deposit address.
func (s *spending) deposited(amount uint64) settlement.Settlement {
	s.t.Helper()

	d, err := s.engine.Invoices.CreateDeposit(
		s.t.Context(),
		invoice.DepositParams{Owner: s.owner, Network: s.network.Network().Slug},
	)
	s.must(err)

	s.network.Pay(d.Address, chain.Units(amount))
	s.pass()

	found := s.settlements()
	if len(found) != 1 {
		s.t.Fatalf("there are %d settlements", len(found))
	}

	return found[0]
}

func (s *spending) settlements() []settlement.Settlement {
	s.t.Helper()

	found, _, err := s.engine.Settlements.List(s.t.Context(), settlement.Filter{Owner: s.owner, Limit: 10})
	s.must(err)

	return found
}

// pass mines what waits, and has the engine do what is due for half an hour.
func (s *spending) pass() {
	s.t.Helper()

	for range 60 {
		s.network.Mine(1)
		time.Sleep(30 * time.Second)

		for {
			did, err := s.engine.Step(s.t.Context())
			s.must(err)

			if !did {
				break
			}
		}
	}
}

// steal pays all coins of one of our addresses to somebody else, signed with a copy of its key, and returns the hash.
func (s *spending) steal(from chain.Party) string {
	s.t.Helper()
	ctx := s.t.Context()

	native, _ := s.network.Network().Native()
	order := chain.Order{From: from, Coins: s.network.Coins(from), MaxFee: chain.Units(1_000_000)}

	var held chain.Amount
	for _, c := range order.Coins {
		held = held.Add(c.Amount)
	}

	order.Outputs = []chain.Output{{
		To:      s.network.NewAddress(),
		AssetID: native.ID,
		Amount:  held.Sub(chain.Units(50_000)),
	}}

	unsigned, err := s.network.Build(ctx, order)
	s.must(err)

	signatures, err := s.engine.config.Signer.Sign(ctx, chain.SignRequest{Payloads: unsigned.Payloads})
	s.must(err)

	key, err := s.engine.config.Signer.PublicKey(ctx, from.Key)
	s.must(err)

	keys := make([]chain.PublicKey, len(unsigned.Payloads))
	for i := range keys {
		keys[i] = key
	}

	signed, err := s.network.Assemble(order, unsigned, keys, signatures)
	s.must(err)
	s.must(s.network.Broadcast(ctx, signed))
	s.pass()

	return signed.TxHash
}

// differences returns how many differences of each kind an audit finds.
func (s *spending) differences() map[audit.Kind]int {
	s.t.Helper()

	report, err := s.engine.Audit(s.t.Context())
	s.must(err)

	kinds := map[audit.Kind]int{}
	for _, d := range report.Differences() {
		kinds[d.Kind]++
	}

	return kinds
}

// The audit names a coin of a deposit address that somebody else spent until a person has said so, and is clean then.
func TestAuditIsCleanOnceASpentCoinIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpending(t, account.Settings{Name: "Corner Shop", ManualRelease: true})
		hash := s.steal(s.deposited(5_000_000).Deposit)

		found := s.differences()
		if len(found) != 2 || found[audit.MoneyMissing] != 1 || found[audit.ForeignTransaction] != 1 {
			t.Fatalf("the audit finds %v", found)
		}

		s.must(s.engine.Acknowledge(t.Context(), s.network.Network().Slug, hash, wallet.Foreign))

		if found := s.differences(); len(found) != 0 {
			t.Errorf("the audit finds %v afterwards", found)
		}
	})
}

// The same of a master wallet, which holds nothing but what releases brought.
func TestAuditIsCleanOnceASpentReleaseIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpending(t, account.Settings{Name: "Corner Shop"})
		s.deposited(5_000_000)
		s.pass()

		if got := s.settlements()[0]; got.Status != settlement.Released {
			t.Fatalf("the settlement is %s %s", got.Status, got.Reason)
		}

		master, err := s.engine.Transactions.MasterWallet(t.Context(), s.network.Network().Slug, s.index)
		s.must(err)

		hash := s.steal(master)

		found := s.differences()
		if len(found) != 2 || found[audit.MoneyMissing] != 1 || found[audit.ForeignTransaction] != 1 {
			t.Fatalf("the audit finds %v", found)
		}

		s.must(s.engine.Acknowledge(t.Context(), s.network.Network().Slug, hash, wallet.Foreign))

		if found := s.differences(); len(found) != 0 {
			t.Errorf("the audit finds %v afterwards", found)
		}
	})
}
