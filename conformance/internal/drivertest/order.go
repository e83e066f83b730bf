package drivertest

import (
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

var orderTests = []testCase{
	{"FeeAboveMaximumIsLimited", nil, testOrderMaxFee},
	{"MissingMoneyIsState", nil, testOrderFunds},
	{"BadDestinationIsInvalid", nil, testOrderDestination},
	{"UnpayableDestinationIsInvalid", []Capability{Freezing}, testOrderUnpayable},
	{"SeveralOutputsOrUnsupported", nil, testOrderOutputs},
	{"BuildHasNoEffect", nil, testBuildNoEffect},
	{"AssembleChecksSignatures", nil, testAssembleChecks},
	{"AssembleNeedsNoNode", []Capability{UnreachableNode}, testAssembleOffline},
}

func testOrderMaxFee(e *env) {
	for _, asset := range e.assets() {
		from := e.wallet(asset)

		order := e.order(from, asset, e.newAddress(), amount(asset))
		for _, most := range []chain.Amount{chain.Units(1), {}} {
			order.MaxFee = most
			_, err := e.sender().Build(e.ctx, order)
			e.expectFault(
				"Build with a maximum fee of "+most.String(),
				err, fault.Limited, "fee_above_maximum",
			)
		}

		if asset.Kind == chain.Native {
			order.MaxFee, order.SubtractFee = chain.Units(1), true
			_, err := e.sender().Build(e.ctx, order)
			e.expectFault(
				"Build with SubtractFee and a maximum fee of 1",
				err, fault.Limited, "fee_above_maximum",
			)
		}
	}
}

func testOrderFunds(e *env) {
	for _, asset := range e.assets() {
		from, to := e.wallet(asset), e.newAddress()
		order := e.order(from, asset, to, amount(asset))
		order.Outputs = []chain.Output{{To: to, AssetID: asset.ID, Amount: amount(asset).Mul(101)}}
		_, err := e.sender().Build(e.ctx, order)
		e.expectFault("Build of more "+asset.Symbol+" than there is", err, fault.State, "insufficient_funds")

		if asset.Kind == chain.Native {
			order.Outputs = []chain.Output{{To: to, AssetID: asset.ID, Amount: amount(asset).Mul(100)}}
			_, err = e.sender().Build(e.ctx, order)
			e.expectFault(
				"Build of all the native coin, nothing left for the fee",
				err, fault.State, "insufficient_funds",
			)
		}
	}
}

func testOrderDestination(e *env) {
	from := e.wallet()
	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	order.Outputs = []chain.Output{{To: "not an address", AssetID: e.native.ID, Amount: amount(e.native)}}

	_, err := e.sender().Build(e.ctx, order)
	e.expectFault("Build to a malformed address", err, fault.Invalid, "destination_not_payable")

	order.Outputs = []chain.Output{
		{To: e.newAddress(), AssetID: "000000000000000000000000", Amount: amount(e.native)},
	}
	_, err = e.sender().Build(e.ctx, order)
	e.expectFault("Build of an asset that the network does not have", err, fault.Invalid, "")
}

func testOrderUnpayable(e *env) {
	asset := e.native
	if token, ok := e.token(); ok {
		asset = token // freezing is a thing of tokens on most networks
	}

	from, to := e.wallet(asset), e.newAddress()
	order := e.order(from, asset, to, amount(asset))
	e.must("Freezer.Freeze", e.Network.(control.Freezer).Freeze(e.ctx, to, asset))
	e.settle()
	_, err := e.sender().Build(e.ctx, order)
	e.expectFault("Build to a destination that cannot be paid", err, fault.Invalid, "destination_not_payable")
}

func testOrderOutputs(e *env) {
	from, one, two := e.wallet(), e.newAddress(), e.newAddress()
	order := e.order(from, e.native, one, amount(e.native))
	second := chain.Output{To: two, AssetID: e.native.ID, Amount: amount(e.native).Mul(2)}
	order.Outputs = append(order.Outputs, second)

	_, err := e.sender().Build(e.ctx, order)
	if errors.Is(err, fault.Unsupported) {
		return // allowed, and then nothing else is
	}

	e.must("Build of two outputs", err)

	order.MaxFee = order.MaxFee.Add(order.MaxFee)

	tx := e.sign(order)
	if !slices.Equal(tx.Outputs, order.Outputs) {
		e.t.Errorf("outputs %+v, the order has %+v", tx.Outputs, order.Outputs)
	}

	e.include(tx)

	for _, out := range order.Outputs {
		if got := e.balance(chain.Party{Address: out.To}, e.native); got != out.Amount {
			e.t.Errorf("%s arrived at %s, want %s", got, out.To, out.Amount)
		}
	}
}

func testBuildNoEffect(e *env) {
	from, to := e.wallet(), e.newAddress()
	before := e.balance(from, e.native)
	e.sign(e.order(from, e.native, to, amount(e.native)))
	tx := e.sign(e.order(from, e.native, to, amount(e.native)))
	e.mine(2)

	if got := e.balance(from, e.native); got != before {
		e.t.Errorf("building changed the balance from %s to %s", before, got)
	}

	if st := e.status(tx); st.State == chain.TxIncluded || st.State == chain.TxPooled {
		e.t.Errorf("a transaction that was only built is %s", st.State)
	}
}

func testAssembleChecks(e *env) {
	from := e.wallet()
	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	unsigned := e.build(order)
	keys, signatures := e.signatures(unsigned)
	first, err := e.sender().Assemble(order, unsigned, keys, signatures)
	e.must("Assemble", err)

	second, err := e.sender().Assemble(order, unsigned, keys, signatures)
	if err != nil || second.TxHash != first.TxHash || !slices.Equal(second.Raw, first.Raw) {
		e.t.Errorf("assembled twice: %s, then %s, %v", first.TxHash, second.TxHash, err)
	}

	refused := func(what string, keys []chain.PublicKey, signatures [][]byte) {
		e.t.Helper()

		if tx, err := e.sender().Assemble(order, unsigned, keys, signatures); err == nil {
			e.t.Errorf("Assemble took %s and made %s", what, tx.TxHash)
		} else if !errors.Is(err, fault.Invalid) {
			e.t.Errorf("Assemble of %s: %v, want fault.Invalid", what, err)
		}
	}
	refused("no signatures", keys, nil)
	refused("no keys", nil, signatures)
	refused("a signature too many", keys, append(slices.Clone(signatures), signatures[0]))

	change := func(f func(signature []byte) []byte) [][]byte {
		changed := slices.Clone(signatures)
		changed[len(changed)-1] = f(slices.Clone(changed[len(changed)-1]))

		return changed
	}
	refused("an empty signature", keys, change(func([]byte) []byte { return nil }))
	refused("a signature cut short", keys, change(func(s []byte) []byte { return s[:len(s)-1] }))
	refused("a signature with a bit changed", keys, change(func(s []byte) []byte { s[5] ^= 1; return s }))
	refused("a signature of zeros", keys, change(func(s []byte) []byte { clear(s); return s }))

	// Somebody else's key, with a signature that is right for it.
	foreign := unsigned
	foreign.Payloads = slices.Clone(unsigned.Payloads)

	other := e.party(chain.RoleMaster)
	for i := range foreign.Payloads {
		foreign.Payloads[i].Key = other.Key
	}

	otherKeys, otherSignatures := e.signatures(foreign)
	refused("another key's signature", keys, otherSignatures)
	refused("another key with its signature", otherKeys, otherSignatures)

	// The right key's signature of something else.
	o2 := order
	o2.Outputs = []chain.Output{{To: e.newAddress(), AssetID: e.native.ID, Amount: amount(e.native)}}
	_, otherPayload := e.signatures(e.build(o2))
	refused("a signature of another transaction", keys, otherPayload)
}

func testAssembleOffline(e *env) {
	order := e.order(e.wallet(), e.native, e.newAddress(), amount(e.native))
	unsigned := e.build(order)
	keys, signatures := e.signatures(unsigned)
	first, err := e.sender().Assemble(order, unsigned, keys, signatures)
	e.must("Assemble", err)
	second, err := e.Unreachable.(chain.Sender).Assemble(order, unsigned, keys, signatures)
	e.must("Assemble of a driver without a node", err)

	if first.TxHash != second.TxHash || !slices.Equal(first.Raw, second.Raw) {
		e.t.Errorf("with a node the transaction is %s, without one %s", first.TxHash, second.TxHash)
	}
}
