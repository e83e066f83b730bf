package solana

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ chain.Recoverer = (*driver)(nil)

// tokenPrograms are the programs whose accounts can be recovered.
var tokenPrograms = []solanago.PublicKey{solanago.TokenProgramID, solanago.Token2022ProgramID}

// Strays returns the token accounts of owners that hold something and are not the associated ones of enabled tokens.
// It makes two calls for each address. Nodes that do not index token accounts are fault.Unsupported.
func (d *driver) Strays(ctx context.Context, addresses []chain.Address) ([]chain.Stray, error) {
	owners := make([]solanago.PublicKey, len(addresses))
	for i, address := range addresses {
		var err error
		if owners[i], err = parseKey(string(address)); err != nil {
			return nil, err
		}
	}

	found := make([][]chain.Stray, len(owners)*len(tokenPrograms))

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		return e.forEach(ctx, len(found), func(ctx context.Context, i int) (err error) {
			found[i], err = d.straysOf(
				ctx,
				e,
				owners[i/len(tokenPrograms)],
				tokenPrograms[i%len(tokenPrograms)],
			)

			return err
		})
	})
	if failover.RefusedWith(err, codeMethodUnknown, codeNotIndexed) {
		return nil, fault.Wrap(
			err, fault.Unsupported, "recovery_unsupported", "no node of network %s lists token accounts",
			d.network.Slug,
		)
	}

	strays := slices.Concat(found...)
	slices.SortFunc(strays, func(a, b chain.Stray) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Account, b.Account))
	})

	return strays, err
}

// straysOf returns the strays of an owner that a token program holds.
func (d *driver) straysOf(
	ctx context.Context,
	e *endpoint,
	owner, program solanago.PublicKey,
) (strays []chain.Stray, err error) {
	var listed struct {
		Value []struct {
			Key     string      `json:"pubkey"`
			Account accountInfo `json:"account"`
		} `json:"value"`
	}

	of := map[string]any{"programId": program}
	options := map[string]any{"commitment": newest{e}, "encoding": "base64"}

	if err := e.call(ctx, &listed, "getTokenAccountsByOwner", owner, of, options); err != nil {
		return nil, err
	}

	for _, entry := range listed.Value {
		key, err := parseKey(entry.Key)
		if err != nil || len(entry.Account.Data) < tokenAccountSize {
			return nil, e.Garbled("its list of the token accounts of %s holds something else", owner)
		}

		m := mint{key: solanago.PublicKeyFromBytes(entry.Account.Data[:32]), program: program}

		held, err := parseTokenAccount(&entry.Account, m)
		if err != nil || held.owner != owner {
			return nil, e.Garbled("its list of the token accounts of %s holds another account", owner)
		}

		if held.amount == 0 || d.isListed(owner, key, m.key) {
			continue
		}

		strays = append(strays, chain.Stray{
			Address:  chain.Address(owner.String()),
			Account:  chain.Address(key.String()),
			Contract: chain.Address(m.key.String()),
			AssetID:  chain.AssetID(d.network.CAIP2, chain.Address(m.key.String())),
			Amount:   chain.Units(held.amount),
		})
	}

	return strays, nil
}

// isListed reports whether an account is where the balance of an enabled token is counted.
func (d *driver) isListed(owner, account, mintKey solanago.PublicKey) bool {
	m, enabled := d.mints[mintKey]
	if !enabled {
		return false
	}

	associated, err := m.accountOf(owner)

	return err != nil || associated == account
}

// PlanRecovery returns the order that moves the tokens of an account to the master wallet's associated account, and
// leaves theirs open, with its rent. Wrapped coin that is not enabled is unwrapped there.
func (d *driver) PlanRecovery(ctx context.Context, r chain.RecoveryRequest) (chain.Order, error) {
	order := chain.Order{From: r.Owner, Recovers: &r.Stray}
	if r.Owner.Address != r.Master.Address {
		order.FeePayer = &r.Master
	}

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		m, held, err := d.readStray(ctx, e, r.Stray)
		if err != nil {
			return err
		}

		arrives, err := d.amountAfterFee(ctx, e, chain.SweepRequest{
			Asset:   m.Asset,
			Deposit: r.Owner,
			Amount:  chain.Units(held.amount),
		}, m)
		if err != nil {
			return err
		}

		order.Recovers.Amount = chain.Units(held.amount)
		order.Outputs = []chain.Output{{To: r.Master.Address, AssetID: d.recoveredAs(m), Amount: arrives}}

		b, err := d.newTxBuilder(order)
		if err != nil {
			return err
		}

		price, err := d.prepare(ctx, e, &b)
		order.MaxFee = b.suggestedMaxFee(price)

		return err
	})
	if errors.Is(err, fault.Invalid) || errors.Is(err, fault.Stopped) {
		err = fault.Wrap(
			err, fault.Invalid, "not_recoverable", "what %s holds at %s cannot be moved",
			r.Stray.Address, r.Stray.Account,
		)
	}

	return order, err
}

// readStray returns the token of a stray, enabled or not, and its account. One that is gone is fault.NotFound; one
// that no instruction of this driver moves is fault.Invalid.
func (d *driver) readStray(ctx context.Context, e *endpoint, s chain.Stray) (mint, tokenAccount, error) {
	var none tokenAccount

	owner, err := parseKey(string(s.Address))
	if err != nil {
		return mint{}, none, err
	}

	account, err := parseKey(string(s.Account))
	if err != nil {
		return mint{}, none, err
	}

	key, err := parseKey(string(s.Contract))
	if err != nil {
		return mint{}, none, err
	}

	accounts, _, err := e.accounts(ctx, []solanago.PublicKey{account, key}, 0)
	if err != nil {
		return mint{}, none, err
	}

	if accounts[0] == nil || accounts[1] == nil {
		return mint{}, none, unknownStray(s)
	}

	m, enabled := d.mints[key]
	if !enabled {
		if m, err = d.unlistedMint(key, accounts[1]); err != nil {
			return mint{}, none, err
		}
	}

	held, err := parseTokenAccount(accounts[0], m)
	if err != nil || held.owner != owner || held.amount == 0 || d.isListed(owner, account, key) {
		return mint{}, none, unknownStray(s)
	}

	if held.frozen {
		return mint{}, none, notMovable("the issuer of %s froze the token account %s", s.Contract, s.Account)
	}

	return m, held, nil
}

// unlistedMint returns a token that is not enabled, from its mint.
func (d *driver) unlistedMint(key solanago.PublicKey, account *accountInfo) (mint, error) {
	program, err := parseKey(account.Owner)
	if err != nil || !slices.Contains(tokenPrograms, program) || len(account.Data) < mintSize {
		return mint{}, notMovable("%s is no mint of a token program", key)
	}

	contract := chain.Address(key.String())

	return mint{
		key:      key,
		program:  program,
		accepted: slices.Collect(maps.Values(acceptableRisks)), // nothing is credited
		Asset: chain.Asset{
			ID:       chain.AssetID(d.network.CAIP2, contract),
			Symbol:   key.String(),
			Kind:     chain.Token,
			Contract: contract,
			Decimals: account.Data[44],
		},
	}, nil
}

// recoveredAs returns the asset id of what arrives when a token is recovered.
func (d *driver) recoveredAs(m mint) string {
	if d.isWrappedCoin(m.key) {
		return d.native.ID
	}

	return chain.AssetID(d.network.CAIP2, chain.Address(m.key.String()))
}

// isWrappedCoin reports whether a mint is that of wrapped coin, and no enabled token.
func (d *driver) isWrappedCoin(key solanago.PublicKey) bool {
	_, enabled := d.mints[key]
	return key == solanago.WrappedSol && !enabled
}

// addRecovery adds the payment of an order with Recovers. Its token is read by loadStray.
func (b *txBuilder) addRecovery() error {
	if len(b.order.Outputs) != 1 || b.order.SubtractFee || b.order.Recovers.Address != b.order.From.Address {
		return fault.New(
			fault.Invalid, "order_invalid", "a recovery from %s has to have one output, and no other source",
			b.order.From.Address,
		)
	}

	p := payment{Output: b.order.Outputs[0]}

	var err error
	if p.to, err = parseKey(string(p.To)); err != nil {
		return notPayable(err, p.To, "it is no address")
	}

	if p.to != b.payer {
		return fault.New(
			fault.Invalid, "order_invalid", "a recovery from %s pays %s and not whoever pays its fee",
			b.order.From.Address, p.To,
		)
	}

	if b.source, err = parseKey(string(b.order.Recovers.Account)); err != nil {
		return err
	}

	return b.add(p)
}

// loadStray reads the token of an order with Recovers. Wrapped coin reaches the payer's account of that token, which
// the same transaction opens and closes: so what arrives is in the bytes, and nothing else of the sender moves.
func (d *driver) loadStray(ctx context.Context, e *endpoint, b *txBuilder) error {
	if b.order.Recovers == nil {
		return nil
	}

	m, _, err := d.readStray(ctx, e, *b.order.Recovers)
	if err != nil {
		return err
	}

	p := &b.payments[0]
	if p.AssetID != d.recoveredAs(m) {
		return fault.New(
			fault.Invalid, "order_invalid", "the recovery from %s orders another asset than %s holds",
			b.order.From.Address, b.order.Recovers.Account,
		)
	}

	b.unwraps = d.isWrappedCoin(m.key)

	home, err := m.accountOf(p.to)
	if err != nil {
		return err
	}

	if home == b.source && !b.unwraps {
		return notMovable("%s is the master wallet's own account of that token", b.source)
	}

	b.sourceMint, p.mint = &m, &m

	return nil
}

func notMovable(format string, args ...any) error {
	return fault.New(fault.Invalid, "not_recoverable", format, args...)
}

func unknownStray(s chain.Stray) error {
	return fault.New(
		fault.NotFound, "stray_unknown", "%s holds nothing of %s at %s that no balance shows",
		s.Address, s.Contract, s.Account,
	)
}
