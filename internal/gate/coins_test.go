package gate_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/gate"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// A replacement shares with what it replaces the coin that is on record: with another one of its coins, an older row
// would let a third transaction pass that excludes the first, and not the second.
func TestAReplacementSharesTheCoinOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		coins    []int // of those that the first transaction spends 0 and 1, in the order of its bytes
		accepted bool  // the row is that of the acceptance, after a restart
		refused  bool
	}{
		"all its coins":                        {coins: []int{0, 1}},
		"the coin on record":                   {coins: []int{0, 2}},
		"another coin":                         {coins: []int{1, 2}, refused: true},
		"other coins":                          {coins: []int{2, 3}, refused: true},
		"another coin, as it was accepted":     {coins: []int{1, 2}, accepted: true, refused: true},
		"all its coins, as it was accepted":    {coins: []int{0, 1}, accepted: true},
		"the coin and another, as it accepted": {coins: []int{0, 2}, accepted: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpending(t)

			signed, err := s.sign(t, s.coins[:2])
			if err == nil {
				err = s.network.Broadcast(t.Context(), signed)
			}

			if err != nil {
				t.Fatal(err)
			}

			s.order(signed.Inputs)

			if c.accepted {
				s.restart(t)
			} else {
				s.db.payout.Signing.Spent = []string{
					chaindata.SpendKey(chain.Spend{Outpoint: signed.Inputs[0]}),
				}
				s.gate.Stored(payoutID, signed)
			}

			var coins []chain.Coin
			for _, i := range c.coins {
				coins = append(coins, s.coins[i])
			}

			if _, err := s.sign(
				t,
				coins,
			); (fault.Code(err) == paidAlready) != c.refused ||
				err != nil && !c.refused {
				t.Errorf("it is signed: %v", err)
			}
		})
	}
}

// An equal payout that was replaced, and is in a block while a pool still shows what was replaced, is paid once: the
// next one is signed. It may be old: many were made since.
func TestAReplacedPayoutIsPaidOnce(t *testing.T) {
	s := newSpending(t)
	first := s.coins[0]

	replaced, err := s.sign(t, []chain.Coin{first, s.coins[1]})
	if err != nil {
		t.Fatal(err)
	}

	signed, err := s.sign(t, []chain.Coin{first, s.coins[2]})
	if err == nil {
		err = s.network.Broadcast(t.Context(), signed)
	}

	if err != nil {
		t.Fatal(err)
	}

	pool, err := s.network.Pool(t.Context())
	if err != nil || len(pool) != 1 {
		t.Fatalf("the pool is %v, %v", pool, err)
	}

	stale := chain.PoolTx{TxHash: replaced.TxHash, Transfers: pool[0].Transfers}
	for _, input := range replaced.Inputs {
		stale.Spent = append(stale.Spent, chain.Spend{Outpoint: input, By: replaced.TxHash})
	}

	s.network.pool = []chain.PoolTx{stale}
	s.network.Mine(1)

	other := s.db.payout
	other.ID, other.Signing.Spent = "other", []string{
		chaindata.SpendKey(chain.Spend{Outpoint: first.Outpoint}),
	}

	for i := range 600 {
		unsigned := s.db.payout
		unsigned.ID = strconv.Itoa(i)
		s.db.others = append(s.db.others, unsigned)
	}

	s.db.others = append(s.db.others, other)
	s.restart(t)

	if _, err := s.sign(t, s.coins[3:]); err != nil {
		t.Errorf("the next payout is not signed: %v", err)
	}
}

// decoding is a network that spends coins, and decodes what it built last.
type decoding struct {
	*sim.UTXO
	built chain.Unsigned
	pool  []chain.PoolTx // that it shows once more
}

func (d *decoding) Build(ctx context.Context, order chain.Order) (unsigned chain.Unsigned, err error) {
	d.built, err = d.UTXO.Build(ctx, order)
	return d.built, err
}

func (d *decoding) Decode([]byte) (decoded chain.Decoded, err error) {
	decoded.Outputs, decoded.MaxFee = d.built.Outputs, d.built.MaxFee
	for _, p := range d.built.Payloads {
		decoded.Digests = append(decoded.Digests, p.Data)
	}

	for _, input := range d.built.Inputs {
		decoded.Spends = append(decoded.Spends, chain.Spend{Outpoint: input})
	}

	return decoded, nil
}

func (d *decoding) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	pool, err := d.UTXO.Pool(ctx)
	return append(pool, d.pool...), err
}

// spending is a payout of a network that spends coins, which takes two of the five that its wallet has.
type spending struct {
	network *decoding
	signer  chain.Signer
	from    chain.Party
	coins   []chain.Coin
	db      *rows
	gate    *gate.Gate
	now     time.Time
}

func newSpending(t *testing.T) *spending {
	t.Helper()

	s := &spending{signer: sim.NewSigner(1, nil), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.network = &decoding{UTXO: sim.NewUTXO(sim.UTXOConfig{Clock: func() time.Time { return s.now }})}

	n := s.network.Network()
	native, _ := n.Native()
	s.from.Key = chain.KeyRef{Family: n.Family, Livemode: n.Livemode, Role: chain.RoleMaster}

	public, err := s.signer.PublicKey(t.Context(), s.from.Key)
	if err == nil {
		s.from.Address, err = s.network.DeriveAddress(public)
	}

	if err != nil {
		t.Fatal(err)
	}

	for range 5 {
		s.network.Fund(s.from.Address, chain.Pow10(8))
	}

	s.network.Mine(10)
	s.coins = s.network.Coins(s.from)

	s.db = &rows{payout: payout.Payout{
		ID:            payoutID,
		Owner:         event.Owner{AccountID: accountID},
		Network:       n.Slug,
		AssetID:       native.ID,
		Amount:        chain.Pow10(7).Mul(15),
		Destination:   s.network.NewAddress(),
		MaxNetworkFee: chain.Pow10(7),
		CreatedAt:     s.now,
	}}
	s.restart(t)

	return s
}

// restart makes a gate that remembers nothing.
func (s *spending) restart(t *testing.T) {
	t.Helper()

	registry, err := chain.NewRegistry(s.network)
	if err != nil {
		t.Fatal(err)
	}

	s.gate = gate.New(gate.Config{
		Signer:        s.signer,
		Networks:      registry,
		DB:            s.db,
		VerifyPayout:  func(payout.Payout) error { return nil },
		VerifyAccount: s.db.Account,
		VerifyAddress: invoice.New(invoice.Config{}).VerifyAddress,
		MasterWallet: func(context.Context, string, uint32) (chain.Party, error) {
			return s.from, nil
		},
		FeeAddress: func(string) chain.Address { return "" },
		Now:        func() time.Time { return s.now },
		Log:        slog.New(slog.DiscardHandler),
	})
}

// order moves the coins of some inputs to the front, in the order of these.
func (s *spending) order(inputs []chain.Outpoint) {
	slices.SortStableFunc(s.coins, func(a, b chain.Coin) int {
		place := func(c chain.Coin) int {
			if i := slices.Index(inputs, c.Outpoint); i >= 0 {
				return i
			}

			return len(inputs)
		}

		return place(a) - place(b)
	})
}

// sign has the gate sign the payout from some coins.
func (s *spending) sign(t *testing.T, coins []chain.Coin) (chain.Signed, error) {
	t.Helper()

	p := s.db.payout
	order := chain.Order{
		From:    s.from,
		Coins:   coins,
		MaxFee:  p.MaxNetworkFee,
		Outputs: []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}},
	}

	unsigned, err := s.network.Build(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}

	signatures, err := s.gate.Sign(t.Context(), chain.SignRequest{
		Network:  p.Network,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
		Intent: chain.Intent{
			Kind:      string(wallet.Payout),
			ObjectID:  p.ID,
			AccountID: accountID,
			Outputs:   unsigned.Outputs,
			ObjectIDs: []string{p.ID},
			MaxFee:    unsigned.MaxFee,
		},
	})
	if err != nil {
		return chain.Signed{}, err
	}

	public, err := s.signer.PublicKey(t.Context(), s.from.Key)
	if err != nil {
		t.Fatal(err)
	}

	keys := slices.Repeat([]chain.PublicKey{public}, len(signatures))

	signed, err := s.network.Assemble(order, unsigned, keys, signatures)
	if err != nil {
		t.Fatal(err)
	}

	return signed, nil
}
