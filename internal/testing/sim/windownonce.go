package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Nonce accounts of Windows, in Solana's manner. Every address has WindowsConfig.NonceAccounts of them. What one holds
// is of the block before the one in which it was used last, so it never holds the same again, on no branch. A
// transaction without a window uses one: the account's number and what it holds are in the place of the nonce.

// nonceBits is the part of a transaction's nonce that is the value; the account's number is above it.
const nonceBits = 56

// isDurable reports whether a transaction uses a nonce account. All others have a window.
func (t *transaction) isDurable() bool { return t.validToHeight == 0 && t.validTo == 0 }

// nonceAccount returns the address of a nonce account of an address.
func nonceAccount(of chain.Address, number uint64) chain.Address {
	return chain.Address(fmt.Sprintf("nonce-%d-%s", number, of))
}

// nonceAccount returns the nonce account that a durable transaction uses.
func (t *transaction) nonceAccount() chain.Address {
	return nonceAccount(t.from.address(), t.nonce>>nonceBits)
}

// isUsable reports whether a durable transaction can be the next one in the block of a height: its account held its
// nonce before the block, and no transaction of the block used it.
func (w *Windows) isUsable(t *transaction, height uint64) bool {
	number, value, account := t.nonce>>nonceBits, t.nonce&(1<<nonceBits-1), t.nonceAccount()

	return !w.noNonces && number < uint64(w.config.NonceAccounts) &&
		value == w.ledger.nonces.at(account, height-1) &&
		value == w.ledger.nonces.at(account, height)
}

// advanceNonce has the nonce account of a durable transaction hold the next value after the block of a height.
func (w *Windows) advanceNonce(t *transaction, height uint64) {
	if t.isDurable() {
		w.ledger.nonces.set(t.nonceAccount(), height, referenceOf(w.headers[height-1].Ref)&(1<<nonceBits-1))
	}
}

// setNonce makes a transaction use the durable nonce of its order.
func (w *Windows) setNonce(t *transaction, nonce chain.DurableNonce) error {
	for number := range uint64(w.config.NonceAccounts) {
		if nonceAccount(t.from.address(), number) != nonce.Account {
			continue
		}

		value, err := strconv.ParseUint(nonce.Value, 10, nonceBits)
		t.nonce, t.validToHeight, t.validTo = number<<nonceBits|value, 0, 0

		return err
	}

	return fault.New(fault.Invalid, "order_invalid", "%s is no nonce account of the sender", nonce.Account)
}

// raisePrice makes a transaction offer an eighth more than the one that it replaces.
func (w *Windows) raisePrice(t *transaction, order chain.Order) error {
	if order.Replaces == nil || len(order.Replaces.Raw) == 0 {
		return nil
	}

	old, err := decode(order.Replaces.Raw)
	if err != nil {
		return err
	}

	raised := max(t.maxPrice, old.maxPrice+old.maxPrice/8+1)
	if order.MaxFee.Less(chain.Units(raised).Mul(t.gas())) {
		return fault.New(
			fault.Limited, "fee_above_maximum", "a replacement costs %s, more than the %s that it may cost",
			chain.Units(raised).Mul(t.gas()), order.MaxFee,
		)
	}

	t.maxPrice = raised

	return nil
}

// CloseNonces makes the nonce accounts of an address unusable, or usable again.
func (w *Windows) CloseNonces(of chain.Address, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.closed[of] = closed
}

// RefuseNonces has the network take no durable transaction from now on.
func (w *Windows) RefuseNonces() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.noNonces = true
}

// NonceRefused reports whether the network takes durable transactions no more.
func (w *Windows) NonceRefused(ctx context.Context, signed chain.Signed) (bool, chain.Ref, error) {
	if err := w.call(ctx, MethodNonce); err != nil {
		return false, chain.Ref{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.nonceRefused(signed), w.headers[w.finalHeight()].Ref, nil
}

func (w *Windows) nonceRefused(signed chain.Signed) bool {
	return w.noNonces && signed.DurableNonce != nil && w.finalHeight() > signed.DurableNonce.Height &&
		!w.nonceUsed(*signed.DurableNonce)
}

// NonceAccounts returns the nonce accounts of an address.
func (w *Windows) NonceAccounts(address chain.Address) []chain.Address {
	var accounts []chain.Address
	for number := range uint64(w.config.NonceAccounts) {
		accounts = append(accounts, nonceAccount(address, number))
	}

	return accounts
}

// ReadNonces returns what nonce accounts hold in the node's final block.
func (w *Windows) ReadNonces(
	ctx context.Context,
	address chain.Address,
	accounts []chain.Address,
) ([]chain.NonceAccount, error) {
	if err := w.call(ctx, MethodNonce); err != nil {
		return nil, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	read := make([]chain.NonceAccount, len(accounts))
	for i, account := range accounts {
		read[i].DurableNonce = chain.DurableNonce{
			Account: account,
			Value:   w.nonceValue(account),
			Height:  w.finalHeight(),
		}

		switch {
		case w.closed[address]:
			read[i].Unusable = "it is closed"
		case w.noNonces:
			read[i].Unusable = "the network takes no durable nonces"
		case !slices.Contains(w.NonceAccounts(address), account):
			read[i].Unusable = "it is no nonce account of the address"
		}
	}

	return read, nil
}

// nonceValue returns what a nonce account holds in the node's final block.
func (w *Windows) nonceValue(account chain.Address) string {
	return strconv.FormatUint(w.ledger.nonces.at(account, w.finalHeight()), 10)
}

// NonceUsed reports whether the account of a nonce holds something else in the node's final block.
func (w *Windows) NonceUsed(ctx context.Context, nonce chain.DurableNonce) (bool, chain.Ref, error) {
	if err := w.call(ctx, MethodNonce); err != nil {
		return false, chain.Ref{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.nonceUsed(nonce), w.headers[w.finalHeight()].Ref, nil
}

// nonceUsed reports whether the account of a nonce holds something else in the node's final block. A node that is
// behind the block in which it was read shows what the account held before.
func (w *Windows) nonceUsed(nonce chain.DurableNonce) bool {
	return w.finalHeight() > nonce.Height && w.nonceValue(nonce.Account) != nonce.Value
}
