package gate

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// DB is what the gate reads. It believes nothing of it that no tag covers.
type DB interface {
	PayoutByID(ctx context.Context, id string) (payout.Payout, error)
	Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error)
	MatchAddresses(ctx context.Context, space chain.Space, list []chain.Address) ([]invoice.Address, error)
}

// Config is what a Gate needs; all of it is required.
type Config struct {
	// Signer is the host's.
	Signer   chain.Signer
	Networks *chain.Registry
	DB       DB

	// CancelUncovered cancels the refund of a payout where what is confirmed does not cover it; canceled is false
	// otherwise.
	CancelUncovered func(ctx context.Context, p payout.Payout) (canceled bool, err error)

	// VerifyPayout, VerifyAccount and VerifyAddress check the tags of rows; VerifyAccount also reads its row. What
	// they return is used, and nothing that is read beside it.
	VerifyPayout  func(p payout.Payout) error
	VerifyAccount func(ctx context.Context, id string) (account.Account, error)
	VerifyAddress func(a invoice.Address) (invoice.VerifiedAddress, error)

	// MasterWallet returns the master wallet of the account with an index.
	MasterWallet func(ctx context.Context, network string, index uint32) (chain.Party, error)
	// FeeAddress returns where the platform's fee goes on a network; empty for none.
	FeeAddress func(network string) chain.Address

	// Now returns the time, the later one where clocks differ: none of them alone makes a payout younger.
	Now func() time.Time
	Log *slog.Logger
}
