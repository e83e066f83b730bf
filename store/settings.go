package store

import (
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file turns an account into the settings that the domains read from a store, with defaults filled in,
// so that every store returns the same.

// InvoiceSettings returns the settings of an account that package invoice needs.
func InvoiceSettings(a account.Account) invoice.Settings {
	return invoice.Settings{
		ToleranceBPS: a.Settings.ToleranceBPS,
		AcceptLate:   a.Settings.AcceptLatePayments,
		Assets:       a.Settings.Assets,
	}
}

// SettlementSettings returns the settings of an account that package settlement needs.
func SettlementSettings(a account.Account) settlement.Settings {
	s := settlement.Settings{
		FeeBPS:      settlement.DefaultFeeBPS,
		SweepMinUSD: a.Settings.SweepMinUSD,
		AutoRelease: !a.Settings.ManualRelease,
		Index:       a.Index,
	}
	if a.Settings.FeeBPS != nil {
		s.FeeBPS = *a.Settings.FeeBPS
	}

	return s
}

// PayoutSettings returns the settings of an account that package payout needs.
func PayoutSettings(a account.Account) payout.Settings {
	return payout.Settings{
		PerHour:         a.Settings.PayoutsPerHour,
		Index:           a.Index,
		ApproveAboveUSD: a.Settings.ApproveAboveUSD,
	}
}
