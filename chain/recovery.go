package chain

import "context"

// Stray is money at an address of ours that no balance shows: a token that is not enabled, wrapped coin, or a token
// in another account than the one where it is counted. No record is about it.
type Stray struct {
	// Address is the address of ours.
	Address Address `json:"address"`
	// Account holds the tokens for it.
	Account Address `json:"account"`
	// Contract is the token (Solana: its mint), AssetID the id that AssetID derives from it. The token need not be
	// enabled.
	Contract Address `json:"contract"`
	AssetID  string  `json:"asset_id"`
	// Amount is what the account holds, in base units of the token.
	Amount Amount `json:"amount"`
}

// RecoveryRequest asks how to move a stray to the master wallet.
type RecoveryRequest struct {
	Stray Stray
	// Owner is Stray.Address with its key.
	Owner  Party
	Master Party
}

// StrayLister finds strays. The audit lists them; where the driver is no Recoverer nothing moves them.
type StrayLister interface {
	// Strays returns what addresses hold besides the balances that Balances reads, in the newest block, by address
	// and account. Accounts that hold nothing are left out. fault.Unsupported: no node serves it.
	Strays(ctx context.Context, addresses []Address) ([]Stray, error)
}

// Recoverer finds strays, and plans how they reach the master wallet.
type Recoverer interface {
	StrayLister
	// PlanRecovery returns the order that moves all of a stray to the master wallet, which pays its fee. The order
	// takes nothing else from the owner: neither coin nor a balance that Balances reads. Its output is of the
	// native coin where wrapped coin is unwrapped. It reads the network and changes nothing. A stray that cannot be
	// moved as it stands is fault.Invalid with code not_recoverable, one that is gone fault.NotFound with code
	// stray_unknown.
	PlanRecovery(ctx context.Context, r RecoveryRequest) (Order, error)
}
