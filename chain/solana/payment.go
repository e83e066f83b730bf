package solana

import (
	"context"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// payment is one output of an order.
type payment struct {
	chain.Output
	to     solanago.PublicKey
	mint   *mint // nil for the native coin
	amount uint64

	// Of tokens, once the network was asked:
	account solanago.PublicKey // the destination's token account
	create  bool               // it has to be made first
	gross   uint64             // what has to be moved for amount to arrive
	fee     uint64             // what the mint keeps of it
	hasFee  bool               // the mint can take fees
}

// spend is an order in the network's terms, and what the network said of it.
type spend struct {
	order       chain.Order
	from, payer solanago.PublicKey
	payments    []payment

	coin, payerCoin uint64             // what from and payer hold
	source          solanago.PublicKey // the sender's token account
	sourceMint      *mint              // nil when no tokens are sent
	held            tokenAccount       // what the source is; zero when it does not exist
	rent            uint64             // of the token accounts that have to be made
	least           uint64             // what an account without data must hold, or nothing
	refund          *solanago.PublicKey
}

// spendOf reads an order without asking anybody. What no network would carry out is fault.Invalid.
func (d *Driver) spendOf(order chain.Order) (spend, error) {
	s := spend{order: order}

	var err error
	if s.from, err = parseKey(string(order.From.Address)); err != nil {
		return s, err
	}

	s.payer = s.from
	if order.FeePayer != nil {
		if s.payer, err = parseKey(string(order.FeePayer.Address)); err != nil {
			return s, err
		}
	}

	if len(order.Outputs) == 0 {
		return s, fault.New(
			fault.Invalid, "order_invalid", "the order from %s pays nothing",
			order.From.Address,
		)
	}

	for _, out := range order.Outputs {
		p := payment{Output: out}
		if p.to, err = parseKey(string(out.To)); err != nil {
			return s, notPayable(err, out.To, "it is no address")
		}

		if out.AssetID != d.native.ID {
			m, ok := d.mintOf(out.AssetID)
			if !ok {
				return s, fault.New(
					fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
					d.network.Slug, out.AssetID,
				)
			}

			if s.sourceMint != nil && s.sourceMint.key != m.key {
				return s, fault.New(
					fault.Unsupported, "order_unsupported",
					"one transaction pays %s and %s: order them one by one",
					s.sourceMint.Symbol, m.Symbol,
				)
			}

			p.mint, s.sourceMint = &m, &m
		}

		amount, fits := out.Amount.Uint64()
		if !fits || amount == 0 {
			return s, fault.New(
				fault.Invalid, "amount_invalid",
				"%s base units cannot be sent: Solana has 1 to 2^64-1",
				out.Amount,
			)
		}

		p.amount = amount
		s.payments = append(s.payments, p)
	}

	if last := s.payments[len(s.payments)-1]; order.SubtractFee && (last.mint != nil || s.payer != s.from) {
		return s, fault.New(
			fault.Invalid, "order_invalid",
			"the network fee can only be taken out of a last output of %s that its sender pays for",
			d.native.Symbol,
		)
	}

	if s.sourceMint != nil {
		if s.source, err = s.sourceMint.accountOf(s.from); err != nil {
			return s, err
		}
	}

	return s, nil
}

func notPayable(cause error, to chain.Address, why string) error {
	return fault.Wrap(cause, fault.Invalid, "destination_not_payable", "%s cannot be paid: %s", to, why)
}

// survey asks the network what it takes to carry the order out, and refuses destinations that
// cannot be paid. What the sender holds is noted and not judged.
func (d *Driver) survey(ctx context.Context, e *endpoint, s *spend) error {
	keys := []solanago.PublicKey{s.from, s.payer}
	if s.sourceMint != nil {
		keys = append(keys, s.sourceMint.key, s.source)
	}

	first := len(keys)

	for i := range s.payments {
		p := &s.payments[i]

		p.account = p.to
		if p.mint != nil {
			var err error
			if p.account, err = p.mint.accountOf(p.to); err != nil {
				return notPayable(err, p.To, "it cannot own a token account")
			}
		}

		keys = append(keys, p.to, p.account)
	}

	accounts, _, err := e.accounts(ctx, keys, 0)
	if err != nil {
		return err
	}

	if s.least, err = e.rentFor(ctx, 0); err != nil {
		return err
	}

	s.coin, s.payerCoin = lamports(accounts[0]), lamports(accounts[1])

	var (
		state mintState
		rate  feeRate
	)

	if s.sourceMint != nil {
		if state, err = readMint(*s.sourceMint, accounts[2]); err != nil {
			return err
		}

		if rate, err = e.feeRate(ctx, state); err != nil {
			return err
		}

		if accounts[3] != nil {
			if s.held, err = readTokenAccount(
				accounts[3], *s.sourceMint,
			); err != nil ||
				s.held.owner != s.from {
				return fault.Wrap(
					err, fault.Stopped, "token_account_lost",
					"the token account %s is not, or no longer, that of %s; look at who changed its owner",
					s.source, s.from,
				)
			}
		}
	}

	created := map[solanago.PublicKey]bool{}

	for i := range s.payments {
		p, owner, account := &s.payments[i], accounts[first+2*i], accounts[first+2*i+1]
		if err := d.checkDestination(*p, owner, s.least, s.order.SubtractFee); err != nil {
			return err
		}

		if p.mint == nil {
			continue
		}

		if err := checkTokenDestination(*p, account); err != nil {
			return err
		}

		p.hasFee = state.fee != nil
		if err := p.grossUp(rate, s.held.amount); err != nil {
			return err
		}

		if account != nil || created[p.account] {
			continue
		}

		rent, err := e.rentFor(ctx, state.accountSize(*p.mint))
		if err != nil {
			return err
		}

		p.create, created[p.account] = true, true
		s.rent += rent
	}

	return nil
}

// grossUp sets what has to be moved for the amount to arrive. Several sums deliver the same; all
// that is held is preferred, so that an account is emptied.
func (p *payment) grossUp(rate feeRate, held uint64) error {
	if p.gross = p.amount; !p.hasFee {
		return nil
	}

	if held-rate.of(held) == p.amount {
		p.gross, p.fee = held, rate.of(held)
		return nil
	}

	gross, ok := rate.before(p.amount)
	if !ok || gross-rate.of(gross) != p.amount {
		return fault.New(
			fault.Invalid, "amount_invalid",
			"%d base units of %s cannot be made to arrive beside its transfer fee",
			p.amount, p.mint.Symbol,
		)
	}

	p.gross, p.fee = gross, rate.of(gross)

	return nil
}

// checkDestination refuses what is no wallet: token accounts, mints, programs and their data, and
// addresses that nobody can have a key for.
func (d *Driver) checkDestination(p payment, owner *accountInfo, least uint64, subtracted bool) error {
	switch {
	case owner == nil && !p.to.IsOnCurve():
		return notPayable(
			nil,
			p.To,
			"no key can sign for it (it is off the curve) and no account is there; ask the recipient for "+
				"a wallet address",
		)
	case owner == nil && p.mint == nil && p.amount < least && !subtracted:
		return notPayable(
			nil, p.To,
			"it is a new account, which must receive at least "+chain.Units(least).String()+" lamports",
		)
	case owner == nil:
		return nil
	case owner.Executable:
		return notPayable(nil, p.To, "it is a program")
	case owner.Owner == solanago.TokenProgramID.String() || owner.Owner == solanago.Token2022ProgramID.String():
		why := "it is a mint"
		if len(owner.Data) >= tokenAccountSize &&
			(len(owner.Data) == tokenAccountSize || owner.Data[kindAt] == kindTokenAccount) {
			why = "it is a token account; pay to its owner " + solanago.PublicKeyFromBytes(owner.Data[32:64]).
				String() +
				" instead"
		}

		return notPayable(nil, p.To, why)
	case owner.Owner != solanago.SystemProgramID.String() || len(owner.Data) > 0:
		return notPayable(nil, p.To, "it is an account of the program "+owner.Owner+", not a wallet")
	}

	return nil
}

func checkTokenDestination(p payment, account *accountInfo) error {
	if account == nil {
		return nil
	}

	if account.Owner == solanago.SystemProgramID.String() && len(account.Data) == 0 {
		return nil // somebody sent coin there; it can still be made
	}

	t, err := readTokenAccount(account, *p.mint)
	switch {
	case err != nil:
		return notPayable(err, p.To, "its token account "+p.account.String()+" cannot be used")
	case t.owner != p.to:
		return notPayable(
			nil, p.To, "its token account "+p.account.String()+" was given to "+t.owner.String(),
		)
	case t.frozen:
		return notPayable(
			nil, p.To,
			"its token account "+p.account.String()+" is frozen by the issuer of "+p.mint.Symbol,
		)
	case t.memoRequired:
		return notPayable(
			nil, p.To, "its token account "+p.account.String()+" only takes transfers with a memo",
		)
	}

	return nil
}

// judge says whether the sender can pay, given the network fee.
func (s *spend) judge(native chain.Asset, fee uint64) error {
	short := func(who solanago.PublicKey, asset string, has, needs uint64) error {
		return fault.New(
			fault.State, "insufficient_funds", "%s holds %d base units of %s, %d are needed",
			who, has, asset, needs,
		)
	}

	var coin, tokens chain.Amount

	for _, p := range s.payments {
		if p.mint == nil {
			coin = coin.Add(chain.Units(p.amount))
		} else {
			tokens = tokens.Add(chain.Units(p.gross))
		}
	}

	if s.sourceMint != nil {
		if s.held.frozen {
			return fault.New(
				fault.State, "wallet_frozen", "the token account %s is frozen by the issuer of %s",
				s.source, s.sourceMint.Symbol,
			)
		}

		if needs, _ := tokens.Uint64(); chain.Units(s.held.amount).Less(tokens) {
			return short(s.from, s.sourceMint.Symbol, s.held.amount, needs)
		}
	}

	due := map[solanago.PublicKey]chain.Amount{}
	due[s.from] = coin

	due[s.payer] = due[s.payer].Add(chain.Units(fee)).Add(chain.Units(s.rent))
	for who, has := range map[solanago.PublicKey]uint64{s.from: s.coin, s.payer: s.payerCoin} {
		needs := due[who]
		if needs.IsZero() {
			continue
		}

		left := chain.Units(has).SubFloor(needs)
		if chain.Units(has).Less(needs) || (!left.IsZero() && left.Less(chain.Units(s.least))) {
			return fault.New(
				fault.State,
				"insufficient_funds",
				"%s holds %d base units of %s, %s are needed, and what is left must be nothing or at "+
					"least the rent minimum of %d",
				who,
				has,
				native.Symbol,
				needs,
				s.least,
			)
		}
	}

	return nil
}

// missing is what the sender has to pay less than planned, so that its account keeps nothing or the
// rent minimum; when it is to stay open, the rent minimum.
func (s *spend) missing(planned chain.Amount, keepOpen bool) uint64 {
	stays, _ := chain.Units(s.coin).SubFloor(planned).Uint64() // no more than coin, so it fits
	if stays == 0 && !keepOpen {
		return 0
	}

	return s.least - min(s.least, stays)
}

func lamports(a *accountInfo) uint64 {
	if a == nil {
		return 0
	}

	return a.Lamports
}

// rentFor returns what an account of a size must hold.
func (e *endpoint) rentFor(ctx context.Context, size int) (uint64, error) {
	var n uint64

	err := e.call(ctx, &n, "getMinimumBalanceForRentExemption", size, confirmed{})

	return n, err
}

// feeRate returns the transfer fee of a mint now; zero when it takes none.
func (e *endpoint) feeRate(ctx context.Context, s mintState) (feeRate, error) {
	if s.fee == nil {
		return feeRate{}, nil
	}

	var info struct {
		Epoch uint64 `json:"epoch"`
	}
	if err := e.call(ctx, &info, "getEpochInfo", confirmed{}); err != nil {
		return feeRate{}, err
	}

	return s.fee.at(info.Epoch), nil
}
