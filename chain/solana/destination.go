package solana

import (
	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// checkDestination returns fault.Invalid when the destination is no wallet: a token account, a mint, a
// program, its data, or an unused address off the curve. A new account must receive minBalance
// lamports, unless the fee is subtracted from the payment.
func (p *payment) checkDestination(owner *accountInfo, minBalance uint64, subtractFee bool) error {
	switch {
	case owner == nil && !p.to.IsOnCurve():
		return notPayable(
			nil, p.To,
			"no key can sign for it (it is off the curve) and no account is there; ask the recipient for "+
				"a wallet address",
		)
	case owner == nil && p.mint == nil && p.amount < minBalance && !subtractFee:
		return notPayable(
			nil, p.To,
			"it is a new account, which must receive at least "+chain.Units(minBalance).String()+" lamports",
		)
	case owner == nil:
		return nil
	case owner.Executable:
		return notPayable(nil, p.To, "it is a program")
	case owner.Owner == solanago.TokenProgramID.String() || owner.Owner == solanago.Token2022ProgramID.String():
		return notPayable(nil, p.To, describeTokenState(owner.Data))
	case owner.Owner != solanago.SystemProgramID.String() || len(owner.Data) > 0:
		return notPayable(nil, p.To, "it is an account of the program "+owner.Owner+", not a wallet")
	}

	return nil
}

// describeTokenState returns the reason why an account of a token program cannot be paid.
func describeTokenState(data []byte) string {
	isTokenAccount := len(data) >= tokenAccountSize &&
		(len(data) == tokenAccountSize || data[accountTypeAt] == typeTokenAccount)
	if !isTokenAccount {
		return "it is a mint"
	}

	owner := solanago.PublicKeyFromBytes(data[32:64])

	return "it is a token account; pay to its owner " + owner.String() + " instead"
}

// checkTokenDestination returns fault.Invalid when the destination's token account cannot be credited.
func (p *payment) checkTokenDestination(account *accountInfo) error {
	if !isOpened(account) {
		return nil
	}

	subject := "its token account " + p.account.String()

	t, err := parseTokenAccount(account, *p.mint)
	switch {
	case err != nil:
		return notPayable(err, p.To, subject+" cannot be used")
	case t.owner != p.to:
		return notPayable(nil, p.To, subject+" was given to "+t.owner.String())
	case t.frozen:
		return notPayable(nil, p.To, subject+" is frozen by the issuer of "+p.mint.Symbol)
	case t.memoRequired:
		return notPayable(nil, p.To, subject+" only takes transfers with a memo")
	}

	return nil
}

func notPayable(cause error, to chain.Address, reason string) error {
	return fault.Wrap(cause, fault.Invalid, "destination_not_payable", "%s cannot be paid: %s", to, reason)
}
