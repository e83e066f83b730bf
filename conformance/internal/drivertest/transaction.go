package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

func (e *env) sender() chain.Sender { return as[chain.Sender](e) }

// wallet returns an address of ours that holds a hundred times the suite's amount of the native
// coin and of the given assets.
func (e *env) wallet(assets ...chain.Asset) chain.Party {
	e.t.Helper()
	party := e.party(chain.RoleMaster)
	e.fund(party, e.native, amount(e.native).Mul(100))

	for _, asset := range assets {
		if asset.Kind != chain.Native {
			e.fund(party, asset, amount(asset).Mul(100))
		}
	}

	return party
}

// order returns a complete order to pay one destination.
func (e *env) order(from chain.Party, asset chain.Asset, to chain.Address, sum chain.Amount) chain.Order {
	e.t.Helper()

	output := chain.Output{To: to, AssetID: asset.ID, Amount: sum}

	return e.complete(chain.Order{From: from, Outputs: []chain.Output{output}})
}

// complete sets nonce, coins and maximum fee, as the sender of this library does.
func (e *env) complete(order chain.Order) chain.Order {
	e.t.Helper()

	if e.has(Nonces) {
		nonce, err := as[chain.Nonces](e).Nonce(e.ctx, order.From.Address)
		e.must("Nonce", err)

		order.Nonce = nonce
	}

	if e.has(CoinSource) && len(order.Coins) == 0 {
		coins, err := e.Network.(control.CoinLister).Coins(e.ctx, order.From)
		e.must("CoinLister.Coins", err)

		order.Coins = coins
	}

	if order.MaxFee.IsZero() {
		order.MaxFee = amount(e.native)
		if e.has(FeeEstimator) {
			fee, err := as[chain.FeeEstimator](e).EstimateFee(e.ctx, order)
			e.must("EstimateFee", err)

			order.MaxFee = fee
		}
	}

	return order
}

func (e *env) build(order chain.Order) chain.Unsigned {
	e.t.Helper()
	unsigned, err := e.sender().Build(e.ctx, order)
	e.must("Build", err)

	if len(unsigned.Payloads) == 0 || len(unsigned.Raw) == 0 {
		e.t.Fatalf("Build made %+v: a transaction without bytes or payloads", unsigned)
	}

	if order.MaxFee.Less(unsigned.MaxFee) || unsigned.MaxFee.IsZero() {
		e.t.Fatalf(
			"Build made a transaction that may cost %s, the order allows %s",
			unsigned.MaxFee, order.MaxFee,
		)
	}

	return unsigned
}

// signatures signs the payloads and returns the public keys beside the signatures.
func (e *env) signatures(unsigned chain.Unsigned) ([]chain.PublicKey, [][]byte) {
	e.t.Helper()

	keys := make([]chain.PublicKey, 0, len(unsigned.Payloads))
	for _, payload := range unsigned.Payloads {
		key, err := e.Signer.PublicKey(e.ctx, payload.Key)
		e.must("Signer.PublicKey", err)

		keys = append(keys, key)
	}

	signatures, err := e.Signer.Sign(e.ctx, chain.SignRequest{
		Network:  e.network.Slug,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
		Intent:   chain.Intent{Kind: "payout", Outputs: unsigned.Outputs, MaxFee: unsigned.MaxFee},
	})
	e.must("Signer.Sign", err)

	return keys, signatures
}

func (e *env) sign(order chain.Order) chain.Signed {
	e.t.Helper()
	unsigned := e.build(order)
	keys, signatures := e.signatures(unsigned)
	tx, err := e.sender().Assemble(order, unsigned, keys, signatures)
	e.must("Assemble", err)

	if tx.TxHash == "" || len(tx.Raw) == 0 || tx.MaxFee != unsigned.MaxFee || tx.From != order.From.Address ||
		!slices.Equal(tx.Outputs, unsigned.Outputs) || !slices.Equal(tx.Inputs, unsigned.Inputs) {
		e.t.Fatalf("Assemble made %+v of %+v", tx, unsigned)
	}

	return tx
}

func (e *env) broadcast(tx chain.Signed) {
	e.t.Helper()
	e.must("Broadcast", e.sender().Broadcast(e.ctx, tx))
	e.settle()
}

func (e *env) status(tx chain.Signed) chain.TxStatus {
	e.t.Helper()
	st, err := e.sender().Status(e.ctx, tx)
	e.must("Status", err)

	return st
}

// waitState waits until a transaction has a state and returns its status.
func (e *env) waitState(tx chain.Signed, want chain.TxState) chain.TxStatus {
	e.t.Helper()

	var st chain.TxStatus

	e.eventually("a transaction that is "+string(want), func() error {
		if st = e.status(tx); st.State != want {
			return fmt.Errorf("it is %s", st.State)
		}

		return nil
	})

	return st
}

// include broadcasts a transaction, mines it and returns its status.
func (e *env) include(tx chain.Signed) chain.TxStatus {
	e.t.Helper()
	e.broadcast(tx)
	e.mine(1)

	return e.waitState(tx, chain.TxIncluded)
}

// finalize mines until a transaction is final and returns its status. At each block the status has to say what the
// network's rule says.
func (e *env) finalize(tx chain.Signed) chain.TxStatus {
	e.t.Helper()

	var st chain.TxStatus

	e.eventually("a final transaction", func() error {
		before := e.head()
		st = e.status(tx)

		switch {
		case st.State != chain.TxIncluded:
			return nil
		case st.Final:
			e.expectFinalBlock(st.Block)
			return nil
		case e.isFinalAt(before, st.Block):
			return errors.New("the network's rule says that its block is final, the status does not")
		}

		e.mine(1)

		return errors.New("it is included, but not final")
	})

	if st.State != chain.TxIncluded {
		e.t.Fatalf("an included transaction became %+v, though nothing forked", st)
	}

	return st
}

// isFinalAt reports whether the network's rule calls a block final at a head.
func (e *env) isFinalAt(head chain.Head, block chain.Ref) bool {
	at := scan.Cursor{At: head.Tip, Safe: head.Safe, Final: head.Final}
	return scanstate.IsFinal(at, e.network, e.network.Confirmations, block)
}

// expectFinalBlock checks that the network's rule calls a block final by now.
func (e *env) expectFinalBlock(block chain.Ref) {
	e.t.Helper()

	if head := e.head(); !e.isFinalAt(head, block) {
		e.t.Fatalf(
			"a status calls block %d final; by the rule %q (%d confirmations) it is not: tip %d, safe %d, final %d",
			block.Height,
			e.network.Rule,
			e.network.Confirmations,
			head.Tip.Height,
			head.Safe.Height,
			head.Final.Height,
		)
	}
}

// expectIncluded checks block and fee of an included transaction.
func (e *env) expectIncluded(tx chain.Signed, st chain.TxStatus) {
	e.t.Helper()
	ref, err := e.Driver.RefAt(e.ctx, st.Block.Height)
	e.must("RefAt", err)

	if ref.Hash != st.Block.Hash {
		e.t.Errorf("included in block %+v, the canonical one is %+v", st.Block, ref)
	}

	if st.Fee.IsZero() || tx.MaxFee.Less(st.Fee) {
		e.t.Errorf("the fee is %s, the transaction allows up to %s", st.Fee, tx.MaxFee)
	}

	if st.Reason != "" {
		e.t.Errorf("an included transaction died of %s", st.Reason)
	}
}

// expectUnchanged checks that a control took nothing from a party of ours.
func (e *env) expectUnchanged(party chain.Party, want chain.Amount) chain.Amount {
	e.t.Helper()

	if got := e.balance(party, e.native); got != want {
		e.t.Fatalf("the harness moved coins of %s: %s, want %s", party.Address, got, want)
	}

	return want
}
