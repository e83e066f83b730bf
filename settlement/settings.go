package settlement

import (
	"github.com/shopspring/decimal"
)

// Settings are what this package needs to know of an account.
type Settings struct {
	FeeBPS int
	// SweepMinUSD holds deposits that are worth less.
	SweepMinUSD decimal.Decimal
	// AutoRelease false leaves settlements pending until Service.ReleaseNow.
	AutoRelease bool
	// Index is the account's index, which names its master wallets.
	Index uint32
}
