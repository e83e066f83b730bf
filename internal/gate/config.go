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

// DB is the part of the store that the gate reads. The gate trusts only data that a tag covers.
type DB interface {
	PayoutByID(ctx context.Context, id string) (payout.Payout, error)
	Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error)
	MatchAddresses(ctx context.Context, space chain.Space, list []chain.Address) ([]invoice.Address, error)
}

// Config holds the needs of a Gate; all fields are required.
type Config struct {
	// Signer is the host's signer.
	Signer   chain.Signer
	Networks *chain.Registry
	DB       DB

	// CancelUncovered cancels the refund of a payout if the confirmed payments do not cover it; canceled is
	// false otherwise.
	CancelUncovered func(ctx context.Context, p payout.Payout) (canceled bool, err error)

	// VerifyPayout, VerifyAccount and VerifyAddress check the tags of rows; VerifyAccount also reads its row.
	// The gate uses only the records that they return, not the rows that it read itself.
	VerifyPayout  func(p payout.Payout) error
	VerifyAccount func(ctx context.Context, id string) (account.Account, error)
	VerifyAddress func(a invoice.Address) (invoice.VerifiedAddress, error)

	// MasterWallet returns the master wallet of an account by the account's index.
	MasterWallet func(ctx context.Context, network string, index uint32) (chain.Party, error)
	// FeeAddress returns the address for the platform's fee on a network; empty if there is none.
	FeeAddress func(network string) chain.Address

	// Now returns the later time of two clocks if they differ, so that no single clock makes a payout
	// younger.
	Now func() time.Time
	Log *slog.Logger
}
