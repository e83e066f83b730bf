// Package account manages merchants: their settings, their API keys and what each key may do.
//
// Of this module it imports fault, event for the owner, and chain for the assets and addresses that
// settings and keys name. Domains that need a setting declare a small Settings type of their own,
// which the store fills from the account's row. The HTTP API calls Authenticate; the host calls the
// other operations.
package account

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Account is one merchant.
type Account struct {
	ID string
	// Index names the account's master wallets (chain.KeyRef); unique, from 0.
	Index    uint32
	Settings Settings
	// LogoType and Logo are the picture that the checkout page shows, at most 64 KiB of PNG, JPEG or WebP.
	LogoType  string
	Logo      []byte
	CreatedAt time.Time
	UpdatedAt time.Time
	// MAC authenticates ID, Index and Settings with payments.Config.SecretKey.
	MAC     []byte
	Version int64
}

// Settings are a merchant's settings.
type Settings struct {
	// Name is shown on the checkout page, at most 80 characters.
	Name string `json:"name"`
	// WebsiteURL is linked from the checkout page; may be empty.
	WebsiteURL string `json:"website_url,omitempty"`
	// SuccessURL and CancelURL are the defaults of invoices that set none.
	SuccessURL string `json:"success_url,omitempty"`
	CancelURL  string `json:"cancel_url,omitempty"`
	// ToleranceBPS is the underpayment that still pays an invoice, 0 to 500 basis points. Defaults to 0.
	ToleranceBPS int `json:"tolerance_bps"`
	// AcceptLatePayments lets a late payment pay an expired or canceled invoice automatically.
	AcceptLatePayments bool `json:"accept_late_payments"`
	// ManualRelease leaves settlements pending until Settlements.ReleaseNow (auto_release false).
	ManualRelease bool `json:"manual_release"`
	// SweepMinUSD is the least value in USD of a deposit that is swept; smaller ones are held.
	SweepMinUSD decimal.Decimal `json:"sweep_min_usd"`
	// FeeBPS is the platform fee in basis points; nil: 50.
	FeeBPS *int `json:"fee_bps,omitempty"`
	// Assets are the assets that invoices may offer, by id; nil: all. UpdateSettings and CreateAccount also
	// accept a symbol: it stands for every enabled asset of that symbol, and is stored as their ids.
	Assets []string `json:"assets,omitempty"`
	// ApproveAboveUSD is the value in USD above which payouts and refunds wait for the approval of a second
	// key (scope payouts:approve); nil: none waits. Without a fresh price each waits.
	ApproveAboveUSD *decimal.Decimal `json:"approve_above_usd,omitempty"`
	// AllowedIPs are addresses or CIDR ranges that may use the account's keys, publishable ones included;
	// empty: any. A key with its own list may be used only from addresses on both lists.
	AllowedIPs []string `json:"allowed_ips,omitempty"`
	// Destinations are the destinations that the account's keys may pay, in both modes; empty: see
	// Key.PayoutDestinations. A key with its own list pays only destinations on both. A destination without a
	// network stands for the address on every network that can parse it now. Calls of the Go API pass their
	// own destinations (payout.Params.Destinations).
	Destinations []chain.Destination `json:"destinations,omitempty"`
	// PayoutsPerHour limits the creation of payouts; 0: 10.
	PayoutsPerHour int `json:"payouts_per_hour,omitempty"`
	// RequestsPerSecond and RequestBurst limit each key; 0: 100 and 300.
	RequestsPerSecond int `json:"requests_per_second,omitempty"`
	RequestBurst      int `json:"request_burst,omitempty"`
}

// EventObject returns the account as the object of an event.
func (a Account) EventObject() event.Object {
	return event.Object{Owner: event.Owner{AccountID: a.ID}, ID: a.ID}
}

// Key is an API key as it is stored: only the SHA-256 of its secret is known.
type Key struct {
	ID          string
	Owner       event.Owner
	Publishable bool
	// Name is a label for people.
	Name string
	// Hash is SHA-256 of the whole key; unique.
	Hash [32]byte
	// Last4 are the last four characters, to recognise a key in a list.
	Last4  string
	Scopes []Scope
	// AllowedIPs are addresses or CIDR ranges that may use the key; empty: any.
	AllowedIPs []string
	// Destinations are the allowed destinations of payouts and refunds; empty: see PayoutDestinations.
	Destinations []chain.Destination
	// ExpiresAt ends a key, such as a rolled one; zero: never. RevokedAt is when it was revoked.
	ExpiresAt, RevokedAt time.Time
	// RolledFrom is the id of the key this one replaced.
	RolledFrom string
	CreatedAt  time.Time
	// MAC authenticates all fields with payments.Config.SecretKey. So write access to the database does not
	// suffice to make a key or to widen one.
	MAC     []byte
	Version int64
}

// live reports whether the key is neither revoked nor expired at a time.
func (k Key) live(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Reader reads the records of this package.
type Reader interface {
	// Account returns an account, or fault.NotFound.
	Account(ctx context.Context, id string) (Account, error)
	// Accounts returns a page, newest first, of the accounts below the id after; "" is above all.
	Accounts(ctx context.Context, after string, limit int) ([]Account, error)
	// KeyByHash returns a key and its account in one query, or fault.NotFound.
	KeyByHash(ctx context.Context, hash [32]byte) (Key, Account, error)
	// Keys returns all keys of an account, of both modes, newest first.
	Keys(ctx context.Context, accountID string) ([]Key, error)
}

// Tx has the reads and writes that one operation of this package may make.
type Tx interface {
	Reader
	event.Appender
	PutAccount(ctx context.Context, a *Account) error
	PutKey(ctx context.Context, k *Key) error
	// ReserveNumbers takes n consecutive numbers from a counter and returns the first; counters
	// start at first.
	ReserveNumbers(ctx context.Context, counter string, n int, first int64) (int64, error)
}

// database is this package's view of a store.
type database interface {
	Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}
