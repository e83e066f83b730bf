//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// crashing is a driver whose process loses the answers to its first broadcasts: of bytes that never left it, or that
// the node took.
type crashing struct {
	solanaDriver
	chain.Recoverer
	chain.Decoder
	lost atomic.Int32 // broadcasts that are still to fail; every other of them reaches the node
}

func (d *crashing) Broadcast(ctx context.Context, tx chain.Signed) error {
	left := d.lost.Add(-1)
	if left < 0 {
		return d.solanaDriver.Broadcast(ctx, tx)
	}

	if left%2 == 0 {
		_ = d.solanaDriver.Broadcast(ctx, tx)
	}

	return errors.New("the process ended")
}

// TestSolanaRecovery has a stranger pay an open invoice's address in ways that no balance shows. The audit lists each,
// and Engine.Recover brings it to the master wallet once, whoever asks how often, while a deposit waits at the address.
func TestSolanaRecovery(t *testing.T) {
	t.Parallel()

	d := &crashing{}
	shop := openSolanaShop(t, func(c solana.Config) (payments.ChainDriver, error) {
		driver, err := solana.New(c)
		if err == nil {
			d.solanaDriver = driver.(solanaDriver)
			d.Recoverer, d.Decoder = driver.(chain.Recoverer), driver.(chain.Decoder)
		}

		return d, err
	})
	s, p := shop.service, shop.p

	settings := s.account.Settings
	settings.ManualRelease = true

	_, err := s.engine.Accounts.UpdateSettings(t.Context(), s.account.ID, settings)
	p.must(err)

	other := p.mint("OTHER", "token", nil)
	inv := s.order("40", "USDC", shop.slug)
	due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address

	p.tokens(shop.usdc, to, due, "legacy")
	s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })

	// What no balance shows.
	elsewhere := func(mint chain.Address, amount string) string {
		return p.wallet(map[string]any{
			"do":      "payElsewhere",
			"mint":    mint,
			"program": "token",
			"to":      to,
			"amount":  amount,
		})["account"]
	}
	want := map[string]chain.Stray{}

	expect := func(account string, contract chain.Address, amount uint64) {
		want[account] = chain.Stray{
			Address:  to,
			Account:  chain.Address(account),
			Contract: contract,
			AssetID:  chain.AssetID(d.Network().CAIP2, contract),
			Amount:   chain.Units(amount),
		}
	}
	usdc, wrapped := shop.usdc.asset.Contract, chain.Address(solanago.WrappedSol.String())

	expect(elsewhere(usdc, "5000000"), usdc, 5_000_000)
	expect(elsewhere(wrapped, "600000"), wrapped, 600_000)
	expect(p.tokens(other, to, chain.Units(7_000), "legacy")["account"], other.asset.Contract, 7_000)

	report := s.auditOf(t, func(n audit.Network) bool { return len(n.Strays) == len(want) })
	for _, stray := range report.Strays {
		if stray.Stray != want[string(stray.Account)] || stray.Owner.AccountID != s.account.ID {
			t.Errorf("listed is %+v, want %+v", stray, want[string(stray.Account)])
		}
	}

	before := report
	tokensBefore, _ := p.tokenBalance(shop.usdc, shop.master)

	d.lost.Store(3)

	for account := range want {
		s.recoverTogether(t, shop.slug, to, account)
	}

	report = s.auditOf(t, func(n audit.Network) bool {
		confirmed := 0

		for _, r := range n.Recoveries {
			if r.State == wallet.Confirmed {
				confirmed++
			}
		}

		return confirmed == len(want)
	})
	if len(report.Recoveries) != len(want) || d.lost.Load() > 0 {
		t.Errorf("%d recoveries, want one for each stray: %+v", len(report.Recoveries), report.Recoveries)
	}

	// What arrived, at the node and on record.
	tokens, _ := p.tokenBalance(shop.usdc, shop.master)
	if got := tokens.Sub(tokensBefore); got != chain.Units(5_000_000) {
		t.Errorf("%s USDC arrived at the master wallet", got)
	}

	if got, _ := p.tokenBalance(other, shop.master); got != chain.Units(7_000) {
		t.Errorf("%s of the unlisted token arrived at the master wallet", got)
	}

	for i, w := range report.Wallets {
		if w.Outside != before.Wallets[i].Outside {
			t.Errorf(
				"%s of %s were from elsewhere, now %s are",
				before.Wallets[i].Outside,
				w.Asset,
				w.Outside,
			)
		}
	}

	if len(report.Strays) != 1 || report.Strays[0].Address != shop.master {
		t.Errorf("left is %+v, want what the master wallet has of the unlisted token", report.Strays)
	}

	if left, _ := p.tokenBalance(shop.usdc, to); left != due {
		t.Errorf("of the deposit of %s there are %s left", due, left)
	}

	if _, err := s.engine.Recover(
		t.Context(),
		shop.slug,
		string(to),
		string(to),
	); !errors.Is(
		err,
		fault.NotFound,
	) {
		t.Errorf("recovered from an account that holds nothing: %v", err)
	}
}

// recoverTogether asks several times at once for a recovery, and gets the same one.
func (s *service) recoverTogether(t *testing.T, slug string, address chain.Address, account string) {
	t.Helper()

	const callers = 4

	var (
		wait sync.WaitGroup
		got  [callers]audit.Recovery
		errs [callers]error
	)

	for i := range callers {
		wait.Go(func() { got[i], errs[i] = s.engine.Recover(t.Context(), slug, string(address), account) })
	}

	wait.Wait()

	for i := range callers {
		if errs[i] != nil || got[i].ID == "" || got[i].ID != got[0].ID {
			t.Errorf("recoveries of %s: %+v, %v", account, got, errs)
			return
		}
	}
}

// auditOf returns the audit of the network once it is as wanted, without a difference.
func (s *service) auditOf(t *testing.T, ok func(audit.Network) bool) (n audit.Network) {
	t.Helper()
	eventually(t, "the audit is as wanted", func() (bool, string) {
		report, err := s.engine.Audit(t.Context())
		if err != nil {
			return false, err.Error()
		}

		n = report.Networks[0]

		return report.Clean() && ok(n), fmt.Sprintf("%+v", n)
	})

	return n
}
