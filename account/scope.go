package account

// Scope is a permission of a key.
type Scope string

// The scopes of decisions part 9.
const (
	InvoicesRead          Scope = "invoices:read"
	InvoicesWrite         Scope = "invoices:write"
	DepositAddressesRead  Scope = "deposit_addresses:read"
	DepositAddressesWrite Scope = "deposit_addresses:write"
	PayoutsRead           Scope = "payouts:read"
	PayoutsWrite          Scope = "payouts:write"
	PayoutsApprove        Scope = "payouts:approve"
	RefundsRead           Scope = "refunds:read"
	RefundsWrite          Scope = "refunds:write"
	WebhooksRead          Scope = "webhook_endpoints:read"
	WebhooksWrite         Scope = "webhook_endpoints:write"
	PaymentsRead          Scope = "payments:read"
	SettlementsRead       Scope = "settlements:read"
	EventsRead            Scope = "events:read"
	BalancesRead          Scope = "balances:read"
)

// AllScopes lists every scope.
func AllScopes() []Scope {
	return []Scope{
		InvoicesRead,
		InvoicesWrite,
		DepositAddressesRead,
		DepositAddressesWrite,
		PayoutsRead,
		PayoutsWrite,
		PayoutsApprove,
		RefundsRead,
		RefundsWrite,
		WebhooksRead,
		WebhooksWrite,
		PaymentsRead,
		SettlementsRead,
		EventsRead,
		BalancesRead,
	}
}

// defaultScopes returns the scopes of a new key: all scopes that cannot send money out.
func defaultScopes() []Scope { // spec D9.8
	var out []Scope

	for _, s := range AllScopes() {
		if s != PayoutsWrite && s != PayoutsApprove && s != RefundsWrite {
			out = append(out, s)
		}
	}

	return out
}
