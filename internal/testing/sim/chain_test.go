package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func fixed() time.Time { return start }

func newChain(t *testing.T) *sim.Chain {
	t.Helper()
	return sim.New(sim.Config{Clock: fixed})
}

// coin is n whole units of the native coin.
func coin(n uint64) chain.Amount { return chain.Pow10(18).Mul(n) }

func dollars(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

func asset(t *testing.T, c *sim.Chain, symbol string) chain.Asset {
	t.Helper()

	a, ok := c.Network().Asset(symbol)
	if !ok {
		t.Fatalf("no asset %s", symbol)
	}

	return a
}

// sign builds, signs and assembles a payment of the party.
func sign(t *testing.T, c *sim.Chain, s *sim.Signer, order chain.Order) chain.Signed {
	t.Helper()

	signed, err := trySign(t.Context(), c, s, order)
	if err != nil {
		t.Fatalf("making a transaction: %v", err)
	}

	return signed
}

func trySign(ctx context.Context, c *sim.Chain, s *sim.Signer, order chain.Order) (chain.Signed, error) {
	if order.MaxFee.IsZero() {
		fee, err := c.EstimateFee(ctx, order)
		if err != nil {
			return chain.Signed{}, err
		}

		order.MaxFee = fee
	}

	unsigned, err := c.Build(ctx, order)
	if err != nil {
		return chain.Signed{}, err
	}

	key, err := s.PublicKey(ctx, order.From.Key)
	if err != nil {
		return chain.Signed{}, err
	}

	signatures, err := s.Sign(
		ctx,
		chain.SignRequest{Network: c.Network().Slug, Unsigned: unsigned.Raw, Payloads: unsigned.Payloads},
	)
	if err != nil {
		return chain.Signed{}, err
	}

	return c.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
}

func broadcast(t *testing.T, c *sim.Chain, tx chain.Signed) {
	t.Helper()

	if err := c.Broadcast(t.Context(), tx); err != nil {
		t.Fatalf("Broadcast: %v", err)
	}
}

func status(t *testing.T, c *sim.Chain, tx chain.Signed) chain.TxStatus {
	t.Helper()

	st, err := c.Status(t.Context(), tx)
	if err != nil {
		t.Fatalf("Status: %v", err)
	}

	return st
}

func wantState(t *testing.T, c *sim.Chain, tx chain.Signed, want chain.TxState) chain.TxStatus {
	t.Helper()

	st := status(t, c, tx)
	if st.State != want {
		t.Fatalf("status of nonce %d is %+v, want %s", tx.Nonce, st, want)
	}

	return st
}

func wantFault(t *testing.T, err, kind error, code string) {
	t.Helper()

	if !errors.Is(err, kind) || fault.Code(err) != code {
		t.Fatalf("error is %v (code %s), want %v with code %s", err, fault.Code(err), kind, code)
	}
}

func TestPaymentReachesItsAddress(t *testing.T) {
	c := newChain(t)
	to := c.NewAddress()
	hash := c.Pay(to, "USDX", dollars(5))

	pool, err := c.Pool(t.Context())
	if err != nil || len(pool) != 1 || pool[0].TxHash != hash {
		t.Fatalf("Pool = %+v, %v", pool, err)
	}

	if got := c.Balance(to, "USDX"); !got.IsZero() {
		t.Fatalf("a waiting payment is in the balance: %s", got)
	}

	tip := c.Mine(1)

	blocks, err := c.Blocks(t.Context(), 0, 1)
	if err != nil || len(blocks) != 2 {
		t.Fatalf("Blocks = %v, %v", blocks, err)
	}

	if blocks[1].Parent != blocks[0].Hash || blocks[1].Ref != tip {
		t.Errorf("block 1 is not linked: %+v after %+v", blocks[1], blocks[0])
	}

	want := chain.Transfer{
		TxHash:  hash,
		Index:   1,
		From:    pool[0].Transfers[0].From,
		To:      to,
		AssetID: asset(t, c, "USDX").ID,
		Amount:  dollars(5),
	}
	if got := blocks[1].Transfers; len(got) != 1 || got[0] != want {
		t.Errorf("transfers = %+v, want %+v", got, want)
	}

	if got := c.Balance(to, "USDX"); got != dollars(5) {
		t.Errorf("balance = %s", got)
	}
}

func TestSenderLifeCycle(t *testing.T) {
	c := newChain(t)
	s := sim.NewSigner(1, nil)
	from := s.Party(chain.RoleMaster, 0, c)
	c.Fund(from.Address, "SIM", coin(1))
	to := c.NewAddress()
	order := chain.Order{
		From:        from,
		Outputs:     []chain.Output{{To: to, AssetID: asset(t, c, "SIM").ID, Amount: coin(1)}},
		SubtractFee: true,
	}
	tx := sign(t, c, s, order)
	wantState(t, c, tx, chain.TxUnknown)
	broadcast(t, c, tx)
	broadcast(t, c, tx)
	wantState(t, c, tx, chain.TxPooled)
	c.Mine(1)

	st := wantState(t, c, tx, chain.TxIncluded)
	if st.Final || st.Reverted || st.Fee != tx.MaxFee || len(st.Transfers) != 1 {
		t.Errorf("status = %+v, want the exact fee %s, not final", st, tx.MaxFee)
	}

	if got := c.Balance(to, "SIM").Add(st.Fee); got != coin(1) {
		t.Errorf("recipient and fee have %s, want all of it", got)
	}

	if got := c.Balance(from.Address, "SIM"); !got.IsZero() {
		t.Errorf("%s is left over", got)
	}

	c.Mine(2)

	if st = wantState(t, c, tx, chain.TxIncluded); !st.Final {
		t.Errorf("not final after three blocks")
	}

	broadcast(t, c, tx)
}
