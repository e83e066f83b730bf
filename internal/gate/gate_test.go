package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
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

const payoutID, accountID = "payout", "account"

// rows are a database of the payout that is signed, and of others.
type rows struct {
	payout payout.Payout
	others []payout.Payout
	// index is that of the account, accountReads how often it was read.
	index        uint32
	accountReads int
}

func (r *rows) PayoutByID(context.Context, string) (payout.Payout, error) { return r.payout, nil }

// Payouts lists the others newest first, as they are in the slice.
func (r *rows) Payouts(_ context.Context, f payout.Filter) ([]payout.Payout, error) {
	all := append([]payout.Payout{r.payout}, r.others...)
	after := slices.IndexFunc(all, func(p payout.Payout) bool { return p.ID == f.After })

	return all[1+after : min(len(all), 1+after+f.Limit)], nil
}

func (r *rows) Account(context.Context, string) (account.Account, error) {
	r.accountReads++

	return account.Account{ID: accountID, Index: r.index}, nil
}

func (r *rows) MatchAddresses(context.Context, chain.Space, []chain.Address) ([]invoice.Address, error) {
	return nil, nil
}

// driver is what the gate and a sender need.
type driver interface {
	chain.Driver
	chain.Finder
	chain.Deriver
	chain.Sender
	chain.Decoder
}

// byAddress reads the network by address, as Solana is read: what an address signed is in its history.
type byAddress struct {
	driver
	blocks chain.BlockScanner
	behind func() uint64 // blocks by which the backend is that answers next; nil for 0
}

func (b byAddress) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) (found []chain.Block, err error) {
	if b.behind != nil {
		head, err := b.Head(ctx)
		if err != nil {
			return nil, err
		}

		if reached := head.Tip.Height - b.behind(); reached < to {
			return nil, fault.New(
				fault.NotFound, "block_unknown", "block %d is above the tip %d", to, reached,
			)
		}
	}

	for from <= to {
		blocks, err := b.blocks.Blocks(ctx, from, to)
		if err != nil {
			return nil, err
		}

		for _, block := range blocks {
			from = block.Height + 1
			block.Transfers = nil
			block.Spent = slices.DeleteFunc(block.Spent, func(s chain.Spend) bool {
				return !slices.Contains(addresses, s.Sender)
			})
			found = append(found, block)
		}
	}

	return found, nil
}

// expiring is a payout on a network whose transactions use up nothing and expire after 30 blocks.
type expiring struct {
	network *sim.Windows
	driver  driver
	signer  chain.Signer
	from    chain.Party
	db      *rows
	gate    *gate.Gate
	now     time.Time
}

func newExpiring(t *testing.T, read func(w *sim.Windows) driver) *expiring {
	t.Helper()

	e := &expiring{signer: sim.NewSigner(1, nil), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	e.network = sim.NewWindows(sim.WindowsConfig{Clock: func() time.Time { return e.now }})
	e.driver = read(e.network)

	n := e.driver.Network()
	e.from.Key = chain.KeyRef{Family: n.Family, Livemode: n.Livemode, Role: chain.RoleMaster}

	public, err := e.signer.PublicKey(t.Context(), e.from.Key)
	if err == nil {
		e.from.Address, err = e.driver.DeriveAddress(public)
	}

	if err != nil {
		t.Fatal(err)
	}

	native, _ := n.Native()
	e.network.Fund(e.from.Address, native.Symbol, chain.Pow10(20))
	e.mine(100)

	e.db = &rows{payout: payout.Payout{
		ID:            payoutID,
		Owner:         event.Owner{AccountID: accountID},
		Network:       n.Slug,
		AssetID:       native.ID,
		Amount:        chain.Pow10(17),
		Destination:   e.network.NewAddress(),
		MaxNetworkFee: chain.Pow10(18),
		CreatedAt:     e.now,
	}}
	e.restart(t)

	return e
}

// restart makes a gate that remembers nothing.
func (e *expiring) restart(t *testing.T) {
	t.Helper()

	registry, err := chain.NewRegistry(e.driver)
	if err != nil {
		t.Fatal(err)
	}

	e.gate = gate.New(gate.Config{
		Signer:        e.signer,
		Networks:      registry,
		DB:            e.db,
		VerifyPayout:  func(payout.Payout) error { return nil },
		VerifyAccount: e.db.Account,
		VerifyAddress: invoice.New(invoice.Config{}).VerifyAddress,
		MasterWallet: func(context.Context, string, uint32) (chain.Party, error) {
			return e.from, nil
		},
		FeeAddress: func(string) chain.Address { return "" },
		Now:        func() time.Time { return e.now },
		Log:        slog.New(slog.DiscardHandler),
	})
}

// mine makes blocks, 2 s each.
func (e *expiring) mine(n int) {
	for range n {
		e.now = e.now.Add(2 * time.Second)
		e.network.Mine(1)
	}
}

// sign has the gate sign the payout, and returns what is to be sent.
func (e *expiring) sign(t *testing.T) (chain.Signed, error) {
	t.Helper()

	p := e.db.payout
	order := chain.Order{
		From:    e.from,
		MaxFee:  p.MaxNetworkFee,
		Outputs: []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}},
	}

	unsigned, err := e.driver.Build(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}

	signatures, err := e.gate.Sign(t.Context(), chain.SignRequest{
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

	public, err := e.signer.PublicKey(t.Context(), e.from.Key)
	if err != nil {
		t.Fatal(err)
	}

	signed, err := e.driver.Assemble(order, unsigned, []chain.PublicKey{public}, signatures)
	if err != nil {
		t.Fatal(err)
	}

	return signed, nil
}

// The account whose tag was checked says which wallet it signs with: its row is read once, and not once more unchecked.
func TestTheVerifiedAccountSigns(t *testing.T) {
	e := newExpiring(t, func(w *sim.Windows) driver { return w })

	if _, err := e.sign(t); err != nil || e.db.accountReads != 1 {
		t.Errorf("a signature reads the account %d times, %v", e.db.accountReads, err)
	}

	e.restart(t)

	e.db.index = 7 // the wallet of the request is that of account 0
	if _, err := e.sign(t); !errors.Is(err, fault.Forbidden) {
		t.Errorf("another account's wallet: %v", err)
	}
}

// paidAlready is the code of what the network shows as paid.
const paidAlready = "payout_paid_already"

// Where transactions only expire, a payout is signed again while the network shows that nothing paid it, and its row
// is not older than its signature.
func TestWhatExpiresIsSignedOnceMore(t *testing.T) {
	networks := map[string]func(w *sim.Windows) driver{
		"by block":   func(w *sim.Windows) driver { return w },
		"by address": func(w *sim.Windows) driver { return byAddress{driver: w.ByAddress().(driver), blocks: w} },
	}

	for name, c := range map[string]struct {
		sent, recorded, stored, restart bool
		approved                        bool // once more
		wait                            int  // blocks
		refused, waits, paid            bool
	}{
		"it expired":                            {recorded: true, stored: true, wait: 40},
		"it expired, after a restart":           {recorded: true, restart: true, wait: 40},
		"it was thrown away":                    {},
		"it may still be included":              {recorded: true, stored: true, waits: true},
		"its row is older than it":              {stored: true, refused: true},
		"it was sent":                           {sent: true, recorded: true, stored: true, wait: 40, paid: true},
		"it was sent, after a restart":          {sent: true, restart: true, wait: 1, paid: true},
		"it was sent long ago, after a restart": {sent: true, restart: true, wait: 1000, paid: true},
		"it was sent, and is approved once more": {
			sent:     true,
			restart:  true,
			approved: true,
			wait:     600,
			paid:     true,
		},
		"it is too old": {recorded: true, restart: true, wait: 3700, refused: true},
	} {
		for kind, read := range networks {
			t.Run(name+"/"+kind, func(t *testing.T) {
				e := newExpiring(t, read)

				signed, err := e.sign(t)
				if err != nil {
					t.Fatal(err)
				}

				if c.sent {
					if err := e.driver.Broadcast(t.Context(), signed); err != nil {
						t.Fatal(err)
					}
				}

				if spends, known := e.gate.Approved(payoutID); !known || len(spends) != 0 {
					t.Errorf("it uses up %q, %t", spends, known)
				}

				if c.stored {
					e.gate.Stored(payoutID, signed)

					if _, known := e.gate.Approved(payoutID); known {
						t.Error("what a row says later counts as signed")
					}
				}

				if c.recorded {
					spent := chain.Spend{Sender: e.from.Address, By: signed.TxHash, Shared: true}
					e.db.payout.Signing.Spent = []string{chaindata.SpendKey(spent)}
				}

				e.mine(c.wait)

				if c.restart {
					e.restart(t)
				}

				if c.approved {
					e.db.payout.Approval = payout.Approval{
						Required:   true,
						ApprovedBy: "somebody",
						ApprovedAt: e.now,
					}
				}

				_, err = e.sign(t)
				if errors.Is(err, fault.Forbidden) != c.refused ||
					errors.Is(err, fault.Unavailable) != (c.waits || c.paid) ||
					(fault.Code(err) == paidAlready) != c.paid ||
					err != nil && !c.refused && !c.waits && !c.paid {
					t.Errorf("it is signed once more: %v", err)
				}
			})
		}
	}
}

// A fork does not leave blocks that it replaced among those that are read.
func TestAForkHidesNoPayment(t *testing.T) {
	e := newExpiring(t, func(w *sim.Windows) driver { return w })

	signed, err := e.sign(t)
	if err != nil {
		t.Fatal(err)
	}

	if err := e.driver.Broadcast(t.Context(), signed); err != nil {
		t.Fatal(err)
	}

	e.network.MineEmpty(3)

	if _, err := e.sign(t); err != nil { // reads these blocks
		t.Fatal(err)
	}

	e.network.Fork(sim.Fork{Depth: 3, Length: 1})
	e.mine(4) // the first of them pays it, at a height that was read

	if _, err := e.sign(t); fault.Code(err) != paidAlready {
		t.Errorf("it is signed although a block of the other branch pays it: %v", err)
	}
}
