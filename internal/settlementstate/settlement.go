package settlementstate

import (
	"github.com/seed-8ee7f392/payments/settlement"
)

// Statuses returns all settlement statuses.
func Statuses() []settlement.Status {
	return []settlement.Status{
		settlement.Pending,
		settlement.Held,
		settlement.Releasing,
		settlement.Released,
		settlement.Failed,
		settlement.Reverted,
	}
}
