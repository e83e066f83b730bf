package settlement

import (
	"github.com/shopspring/decimal"
)

// Settings are the settings of an account that this package needs.
type Settings struct {
	FeeBPS int
	// SweepMinUSD is the least value of a deposit that is released; smaller ones are held.
	SweepMinUSD decimal.Decimal
	// AutoRelease leaves settlements pending until Service.ReleaseNow when it is false.
	AutoRelease bool
	// Index is the account's index, which names its master wallets.
	Index uint32
}
