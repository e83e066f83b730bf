package solana

import (
	"context"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// payment is one output of an order. Amounts are in base units.
type payment struct {
	chain.Output
	to     solanago.PublicKey
	mint   *mint // nil for the native coin
	amount uint64

	// Set by txBuilder.load, for tokens only except for account:
	account solanago.PublicKey // the destination's token account, or the destination
	create  bool               // the token account is not opened
	gross   uint64             // to transfer, so that amount arrives
	fee     uint64             // withheld by the mint from gross
	hasFee  bool               // the mint has a transfer fee
}

// txBuilder builds the transaction of an order. Coin and rent are in lamports.
type txBuilder struct {
	order       chain.Order
	from, payer solanago.PublicKey
	payments    []payment
	nonce       *durableNonce      // nil: a blockhash
	sourceMint  *mint              // nil for the native coin
	source      solanago.PublicKey // the sender's token account

	// shared is the balance of the sender in what it sends, in base units, as two nodes say; nil for what one says.
	shared *uint64

	// Set by load:
	coin, payerCoin uint64       // balances of from and payer
	held            tokenAccount // the source; zero when it does not exist
	rent            uint64       // of the token accounts to create
	minBalance      uint64       // rent minimum of an account without data

	rentRecipient *solanago.PublicKey // of the closed source; nil when it stays open
	unwraps       bool                // a recovery of wrapped coin; see loadStray
}

// newTxBuilder parses an order without calling a node. Errors:
//   - fault.Invalid: no network would execute it;
//   - fault.Unsupported: it pays several tokens.
func (d *driver) newTxBuilder(order chain.Order) (txBuilder, error) {
	b := txBuilder{order: order}

	var err error
	if b.from, err = parseKey(string(order.From.Address)); err != nil {
		return b, err
	}

	if b.nonce, err = newDurableNonce(order); err != nil {
		return b, err
	}

	b.payer = b.from
	if order.FeePayer != nil {
		if b.payer, err = parseKey(string(order.FeePayer.Address)); err != nil {
			return b, err
		}
	}

	if len(order.Outputs) == 0 {
		return b, fault.New(
			fault.Invalid, "order_invalid", "the order from %s pays nothing",
			order.From.Address,
		)
	}

	if order.Recovers != nil {
		return b, b.addRecovery()
	}

	for _, output := range order.Outputs {
		if err := d.addPayment(&b, output); err != nil {
			return b, err
		}
	}

	last := b.payments[len(b.payments)-1]
	if order.SubtractFee && (last.mint != nil || b.payer != b.from) {
		return b, fault.New(
			fault.Invalid, "order_invalid",
			"the network fee can only be taken out of a last output of %s that its sender pays for",
			d.native.Symbol,
		)
	}

	if b.sourceMint != nil {
		if b.source, err = b.sourceMint.accountOf(b.from); err != nil {
			return b, err
		}
	}

	return b, nil
}

// addPayment adds the payment of an output.
func (d *driver) addPayment(b *txBuilder, output chain.Output) error {
	p := payment{Output: output}

	var err error
	if p.to, err = parseKey(string(output.To)); err != nil {
		return notPayable(err, output.To, "it is no address")
	}

	if output.AssetID != d.native.ID {
		m, ok := d.mintOf(output.AssetID)
		if !ok {
			return d.unknownAsset(output.AssetID)
		}

		if b.sourceMint != nil && b.sourceMint.key != m.key {
			return fault.New(
				fault.Unsupported, "order_unsupported",
				"one transaction pays %s and %s: order them one by one",
				b.sourceMint.Symbol, m.Symbol,
			)
		}

		p.mint, b.sourceMint = &m, &m
	}

	return b.add(p)
}

// add sets the amount of a payment and adds it.
func (b *txBuilder) add(p payment) error {
	amount, fits := p.Amount.Uint64()
	if !fits || amount == 0 {
		return fault.New(
			fault.Invalid, "amount_invalid",
			"%s base units cannot be sent: Solana has 1 to 2^64-1",
			p.Amount,
		)
	}

	p.amount = amount
	b.payments = append(b.payments, p)

	return nil
}

// load reads the state of the accounts involved and completes the payments. It does not check the
// sender's funds. Errors:
//   - fault.Invalid: a destination or an amount cannot be paid;
//   - fault.Stopped: the mint is unsafe, or the sender's token account has another owner.
func (d *driver) load(ctx context.Context, e *endpoint, b *txBuilder) error {
	if err := d.loadStray(ctx, e, b); err != nil {
		return err
	}

	keys, err := b.accountKeys()
	if err != nil {
		return err
	}

	accounts, _, err := e.accounts(ctx, keys, 0)
	if err != nil {
		return err
	}

	if b.minBalance, err = d.rentMinimum(ctx, e, 0); err != nil {
		return err
	}

	b.coin, b.payerCoin = lamportsOf(accounts[0]), lamportsOf(accounts[1])
	destinations := accounts[2:]

	var (
		state mintState
		rate  feeRate
	)

	if b.sourceMint != nil {
		if state, rate, err = d.loadSource(ctx, e, b, accounts[2], accounts[3]); err != nil {
			return err
		}

		destinations = accounts[4:]
	}

	b.useShared()

	for i := range b.payments {
		p, owner, account := &b.payments[i], destinations[2*i], destinations[2*i+1]
		if err := p.checkDestination(owner, b.minBalance, b.order.SubtractFee); err != nil {
			return err
		}

		if p.mint == nil {
			continue
		}

		if err := p.checkTokenDestination(account); err != nil {
			return err
		}

		p.hasFee = state.fee != nil || rate != (feeRate{})
		if err := p.grossUp(rate, b.held.amount); err != nil {
			return err
		}

		opened, err := d.sharedOpened(ctx, e, p.account, account)
		if err != nil {
			return err
		}

		if !opened || b.unwraps {
			if err := d.createAccount(ctx, e, b, i, state, account); err != nil {
				return err
			}
		}
	}

	return nil
}

// useShared puts the balance that two nodes say in the place of what one says.
func (b *txBuilder) useShared() {
	switch {
	case b.shared == nil:
	case b.sourceMint != nil:
		b.held.amount = *b.shared
	default:
		b.coin = *b.shared
	}
}

// accountKeys sets the account of every payment and returns the keys of the accounts to read. These are
// sender and payer; for a token its mint and source; then destination and account of each payment.
func (b *txBuilder) accountKeys() ([]solanago.PublicKey, error) {
	keys := []solanago.PublicKey{b.from, b.payer}
	if b.sourceMint != nil {
		keys = append(keys, b.sourceMint.key, b.source)
	}

	for i := range b.payments {
		p := &b.payments[i]

		p.account = p.to
		if p.mint != nil {
			var err error
			if p.account, err = p.mint.accountOf(p.to); err != nil {
				return nil, notPayable(err, p.To, "it cannot own a token account")
			}
		}

		keys = append(keys, p.to, p.account)
	}

	return keys, nil
}

// loadSource parses the mint and the sender's token account, and returns the mint's current fee.
func (d *driver) loadSource(
	ctx context.Context,
	e *endpoint,
	b *txBuilder,
	mintAccount, source *accountInfo,
) (mintState, feeRate, error) {
	state, err := parseMint(*b.sourceMint, mintAccount)
	if err != nil {
		return mintState{}, feeRate{}, err
	}

	rate, err := d.currentFee(ctx, e, *b.sourceMint, state)
	if err != nil || !isOpened(source) {
		return state, rate, err
	}

	b.held, err = parseTokenAccount(source, *b.sourceMint)
	if err != nil || b.held.owner != b.from {
		return mintState{}, feeRate{}, fault.Wrap(
			err, fault.Stopped, "token_account_lost",
			"the token account %s is not, or no longer, that of %s; look at who changed its owner",
			b.source, b.from,
		)
	}

	return state, rate, nil
}

// isOpened reports whether a token account was opened at its address. Anybody can send coin there before.
func isOpened(account *accountInfo) bool {
	return account != nil && (account.Owner != solanago.SystemProgramID.String() || len(account.Data) > 0)
}

// createAccount makes payment i create its token account, unless an earlier payment does. The lamports that are
// at its address already are taken for its rent, unless they are that of an account which may be closed in between.
func (d *driver) createAccount(
	ctx context.Context,
	e *endpoint,
	b *txBuilder,
	i int,
	state mintState,
	account *accountInfo,
) error {
	p := &b.payments[i]
	for _, earlier := range b.payments[:i] {
		if earlier.create && earlier.account == p.account {
			return nil
		}
	}

	rent, err := d.rentMinimum(ctx, e, state.accountSize(*p.mint))
	if err != nil {
		return err
	}

	p.create = true
	b.rent += rent

	if !isOpened(account) {
		b.rent -= min(rent, lamportsOf(account))
	}

	return nil
}

// grossUp sets gross and fee so that the amount arrives. Several gross amounts can deliver the same; the
// whole balance is preferred, so that the account is emptied.
func (p *payment) grossUp(rate feeRate, balance uint64) error {
	if p.gross = p.amount; !p.hasFee {
		return nil
	}

	if balance-rate.calculateFee(balance) == p.amount {
		p.gross, p.fee = balance, rate.calculateFee(balance)
		return nil
	}

	gross, ok := rate.preFeeAmount(p.amount)
	if !ok || gross-rate.calculateFee(gross) != p.amount {
		return fault.New(
			fault.Invalid, "amount_invalid",
			"%d base units of %s cannot be made to arrive beside its transfer fee",
			p.amount, p.mint.Symbol,
		)
	}

	p.gross, p.fee = gross, rate.calculateFee(gross)

	return nil
}
