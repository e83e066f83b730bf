package store

import (
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file turns an account into the settings that the domains ask a store for, defaults filled in, so
// that every store answers the same.

// InvoiceSettings returns what package invoice needs to know of an account.
func InvoiceSettings(a account.Account) invoice.Settings {
	return invoice.Settings{
		ToleranceBPS: a.Settings.ToleranceBPS,
		AcceptLate:   a.Settings.AcceptLatePayments,
		Assets:       a.Settings.Assets,
	}
}

// SettlementSettings returns what package settlement needs to know of an account.
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

// PayoutSettings returns what package payout needs to know of an account.
func PayoutSettings(a account.Account) payout.Settings {
	return payout.Settings{
		PerHour:         a.Settings.PayoutsPerHour,
		Index:           a.Index,
		ApproveAboveUSD: a.Settings.ApproveAboveUSD,
	}
}
