package evm_test

// Building, sending and looking up, against scripted nodes.

import (
	"bytes"
	"crypto/ecdsa"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

// senderKey is the private key of the sender.
var senderKey = keyOf(7)

func sender() chain.Party {
	return chain.Party{Address: chain.Address(crypto.PubkeyToAddress(senderKey.PublicKey).Hex())}
}

func gwei(n uint64) chain.Amount { return chain.Units(n).Mul(1_000_000_000) }

func nativeOrder(driver *evm.Driver) chain.Order {
	native, _ := driver.Network().Native()

	return chain.Order{
		From: sender(),
		Outputs: []chain.Output{
			{To: chain.Address(payee.Hex()), AssetID: native.ID, Amount: gwei(1_000_000)},
		},
		MaxFee: gwei(1_000_000),
		Nonce:  3,
	}
}

func build(
	t *testing.T,
	driver *evm.Driver,
	order chain.Order,
) (chain.Unsigned, chain.Signed, *types.Transaction) {
	t.Helper()

	unsigned, err := driver.Build(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}

	signature, err := crypto.Sign(unsigned.Payloads[0].Data, senderKey)
	if err != nil {
		t.Fatal(err)
	}

	key := chain.PublicKey{Curve: chain.Secp256k1, Bytes: crypto.CompressPubkey(&senderKey.PublicKey)}

	signed, err := driver.Assemble(order, unsigned, []chain.PublicKey{key}, [][]byte{signature})
	if err != nil {
		t.Fatal(err)
	}

	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(signed.Raw); err != nil {
		t.Fatal(err)
	}

	return unsigned, signed, tx
}

func wantNumber(t *testing.T, what string, got *big.Int, want chain.Amount) {
	t.Helper()

	if got.Cmp(want.Big()) != 0 {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// The fake's base fee is 1 gwei, its priority fee 0.1 gwei.
func TestBuildOffersTwiceTheBaseFee(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))

	unsigned, signed, tx := build(t, driver, nativeOrder(driver))
	if tx.Type() != types.DynamicFeeTxType || tx.Nonce() != 3 || tx.Gas() != 21000 ||
		tx.ChainId().Uint64() != fakeChainID ||
		*tx.To() != payee {
		t.Errorf("built %+v", tx)
	}

	wantNumber(t, "the maximum price", tx.GasFeeCap(), chain.Units(2_100_000_000))
	wantNumber(t, "the priority price", tx.GasTipCap(), chain.Units(100_000_000))
	wantNumber(t, "the value", tx.Value(), gwei(1_000_000))

	if want := chain.Units(2_100_000_000).Mul(21000); unsigned.MaxFee != want || signed.MaxFee != want {
		t.Errorf("MaxFee %s and %s, want %s", unsigned.MaxFee, signed.MaxFee, want)
	}

	if tx.Hash().Hex() != signed.TxHash || signed.From != sender().Address || signed.Nonce != 3 {
		t.Errorf("assembled %+v", signed)
	}
	// The unsigned form is the standard's: what is signed is its Keccak-256.
	if unsigned.Raw[0] != 2 || !bytes.Equal(crypto.Keccak256(unsigned.Raw), unsigned.Payloads[0].Data) ||
		types.LatestSignerForChainID(tx.ChainId()).Hash(tx) != common.BytesToHash(unsigned.Payloads[0].Data) {
		t.Error("the payload is not the digest of EIP-1559")
	}
}

func TestAssembleTakesTheSendersSignatureAlone(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	order := nativeOrder(driver)
	unsigned, _, _ := build(t, driver, order)

	other, err := crypto.ToECDSA(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}

	public := func(key *ecdsa.PrivateKey) chain.PublicKey {
		return chain.PublicKey{Curve: chain.Secp256k1, Bytes: crypto.CompressPubkey(&key.PublicKey)}
	}
	signature := func(key *ecdsa.PrivateKey, data []byte) []byte {
		raw, err := crypto.Sign(data, key)
		if err != nil {
			t.Fatal(err)
		}

		return raw
	}
	good := signature(senderKey, unsigned.Payloads[0].Data)
	high := bytes.Clone(good) // the same signature with the other s: valid mathematically, refused by EIP-2
	upperS := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(good[32:64]))
	upperS.FillBytes(high[32:64])

	high[64] ^= 1
	for name, c := range map[string]struct {
		key       chain.PublicKey
		signature []byte
		nonce     uint64
	}{
		"another's signature":      {public(senderKey), signature(other, unsigned.Payloads[0].Data), 3},
		"another's key":            {public(other), good, 3},
		"another's both":           {public(other), signature(other, unsigned.Payloads[0].Data), 3},
		"of something else":        {public(senderKey), signature(senderKey, crypto.Keccak256([]byte("x"))), 3},
		"in the upper half":        {public(senderKey), high, 3},
		"for another nonce":        {public(senderKey), good, 4},
		"with a recovery id of 27": {public(senderKey), append(bytes.Clone(good[:64]), good[64]+27), 3},
	} {
		order.Nonce = c.nonce

		_, err := driver.Assemble(order, unsigned, []chain.PublicKey{c.key}, [][]byte{c.signature})
		if err == nil {
			t.Errorf("a signature %s was taken", name)
		} else {
			wantFault(t, err, fault.Invalid, "")
		}
	}
}

func TestBuildStaysWithinMaxFee(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	order := nativeOrder(driver)
	now := chain.Units(1_100_000_000).Mul(21000) // what the network asks for
	order.MaxFee = now.Add(chain.Units(20999))   // not enough for one wei more per gas
	unsigned, _, tx := build(t, driver, order)
	wantNumber(t, "the maximum price", tx.GasFeeCap(), chain.Units(1_100_000_000))

	if unsigned.MaxFee != now {
		t.Errorf("MaxFee %s, want %s", unsigned.MaxFee, now)
	}

	order.MaxFee = now.Sub(chain.Units(1))
	_, err := driver.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")
}

func TestReplacementPaysAnEighthMore(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	order := nativeOrder(driver)
	_, first, _ := build(t, driver, order)
	order.Replaces = &first
	_, second, tx := build(t, driver, order)
	wantNumber(t, "the maximum price", tx.GasFeeCap(), chain.Units(2_362_500_000))
	wantNumber(t, "the priority price", tx.GasTipCap(), chain.Units(112_500_000))

	order.Outbids = true
	_, _, tx = build(t, driver, order)
	wantNumber(t, "the maximum price that outbids", tx.GasFeeCap(), chain.Units(2_362_500_000))
	wantNumber(t, "the priority price that outbids", tx.GasTipCap(), chain.Units(200_000_000))

	order.Replaces, order.Outbids = &second, false
	_, _, tx = build(t, driver, order)
	wantNumber(t, "the maximum price", tx.GasFeeCap(), chain.Units(2_657_812_500))
	order.MaxFee = chain.Units(2_657_812_500).Mul(21000).Sub(chain.Units(1))
	_, err := driver.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")

	order.MaxFee, order.Nonce = gwei(1_000_000), 4
	_, err = driver.Build(t.Context(), order)
	wantFault(t, err, fault.Invalid, "replacement_invalid")
}

// A node that already has the transaction in a block estimates less for its replacement: the receiver holds the token
// there. Once a fork takes the block away the replacement needs as much as the first.
func TestReplacementKeepsTheGasLimit(t *testing.T) {
	n := newFakeNode(5)
	estimate := hexutil.Uint64(57_947)
	n.answer = func(c rpcCall) (any, bool) { return estimate, c.Method == "eth_estimateGas" }
	driver := driverOf(t, n)
	order := nativeOrder(driver)
	_, first, tx := build(t, driver, order)
	limit := tx.Gas()

	estimate, order.Replaces = 40_847, &first
	if _, _, tx = build(t, driver, order); tx.Gas() != limit {
		t.Errorf("the gas limit is %d, that of the replaced transaction %d", tx.Gas(), limit)
	}

	order.Outputs[0].To = order.From.Address // a cancel makes another call
	if _, _, tx = build(t, driver, order); tx.Gas() >= limit {
		t.Errorf("the gas limit of another call is %d", tx.Gas())
	}
}

// A receiver that empties its account between the estimate and the block needs as much gas as one that never held the
// token: 17,100 more by EIP-2200 and EIP-2929, 97,920 more by EIP-8037. It is measured. A release goes to a wallet of
// ours, and its top-up pays for the limit.
func TestTokenPayoutHasHeadroomForAnEmptiedReceiver(t *testing.T) {
	const anew = 40_847 + 97_920

	n := newFakeNode(5)
	n.answer = func(c rpcCall) (any, bool) {
		if c.Method != "eth_estimateGas" {
			return nil, false
		}

		if strings.Contains(string(c.Params[0]), strings.ToLower(payee.Hex()[2:])) {
			return hexutil.Uint64(40_847), true
		}

		return hexutil.Uint64(anew), true
	}
	driver := driverOf(t, n)
	token, _ := driver.Network().Asset("USDX")

	for role, least := range map[chain.Role]uint64{chain.RoleMaster: anew, chain.RoleDeposit: 40_847} {
		order := nativeOrder(driver)
		order.From.Key.Role = role
		order.Outputs[0].AssetID, order.Outputs[0].Amount = token.ID, chain.Units(1)

		_, _, tx := build(t, driver, order)
		if tx.Gas() < least || role == chain.RoleDeposit && tx.Gas() > 49_017 {
			t.Errorf("%s: the gas limit is %d", role, tx.Gas())
		}
	}
}

func TestSweepSpendsToTheLastUnit(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	order := nativeOrder(driver)
	order.SubtractFee = true
	unsigned, _, tx := build(t, driver, order)
	price := chain.Units(1_350_000_000) // 1.25 × base + priority
	wantNumber(t, "the maximum price", tx.GasFeeCap(), price)
	wantNumber(t, "the priority price", tx.GasTipCap(), price)
	wantNumber(t, "the value", tx.Value(), gwei(1_000_000).Sub(price.Mul(21000)))

	if unsigned.Outputs[0].Amount != gwei(1_000_000).Sub(price.Mul(21000)) {
		t.Errorf("outputs %+v", unsigned.Outputs)
	}

	order.Outputs[0].Amount = price.Mul(21000)
	_, err := driver.Build(t.Context(), order)
	wantFault(t, err, fault.State, "insufficient_funds")
}

func TestSweepToAContractIsRefused(t *testing.T) {
	n := newFakeNode(5)
	n.answer = func(c rpcCall) (any, bool) {
		switch c.Method {
		case "eth_getCode":
			return "0x6000", true
		case "eth_estimateGas":
			return "0x6000", true
		}

		return nil, false
	}
	driver := driverOf(t, n)
	order := nativeOrder(driver)
	order.SubtractFee = true
	_, err := driver.Build(t.Context(), order)
	wantFault(t, err, fault.Invalid, "destination_not_payable")

	order.SubtractFee = false

	_, _, tx := build(t, driver, order)
	if tx.Gas() != 0x6000+0x1334 { // a fifth more, rounded up
		t.Errorf("gas limit %d for an estimate of %d", tx.Gas(), 0x6000)
	}
}

// Rollups such as Arbitrum count publishing as gas: a plain transfer needs more than 21,000 there.
func TestGasThatCountsPublishing(t *testing.T) {
	n := newFakeNode(5)
	n.chainID = evm.Arbitrum.ChainID
	n.seal(0)
	n.answer = func(c rpcCall) (any, bool) { return hexutil.Uint64(100_000), c.Method == "eth_estimateGas" }
	driver := driverOf(t, n, func(c *evm.Config) { c.Network = evm.Arbitrum })
	order := nativeOrder(driver)
	order.SubtractFee = true

	unsigned, _, tx := build(t, driver, order)
	if tx.Gas() != 120_000 {
		t.Errorf("gas limit %d", tx.Gas())
	}

	if sum := unsigned.Outputs[0].Amount.Add(unsigned.MaxFee); sum != gwei(1_000_000) {
		t.Errorf("value and maximum fee are %s", sum)
	}
}

// The L1 data fee of an OP-stack rollup (ethers.js #4674, optimism #2834) is part of each estimate,
// each maximum and the fee paid. A sweep leaves it behind.
func TestL1DataFeeIsCounted(t *testing.T) {
	const oracle = "0x420000000000000000000000000000000000000F"

	n := newFakeNode(5)

	var asked []string

	n.answer = func(c rpcCall) (any, bool) {
		if c.Method != "eth_call" ||
			!strings.Contains(strings.ToLower(string(c.Params[0])), strings.ToLower(oracle)) {
			return nil, false
		}

		asked = append(asked, string(c.Params[0]))
		word := chain.Units(1_000_001).Bytes32()

		return hexutil.Bytes(word[:]), true
	}
	driver := driverOf(t, n, func(c *evm.Config) { c.L1GasPriceOracle = oracle })
	order := nativeOrder(driver)
	unsigned, _, _ := build(t, driver, order)

	l1 := chain.Units(1_250_002) // a quarter more, rounded up
	if want := chain.Units(2_100_000_000).Mul(21000).Add(l1); unsigned.MaxFee != want {
		t.Errorf("MaxFee %s, want %s", unsigned.MaxFee, want)
	}

	if len(asked) != 1 || !strings.Contains(asked[0], "0x49948e0e") {
		t.Errorf("the oracle was asked %v, want getL1Fee(bytes) once", asked)
	}

	fee, err := driver.EstimateFee(t.Context(), order)
	if want := chain.Units(3_150_000_000).Mul(21000).Add(l1); err != nil || fee != want {
		t.Errorf("EstimateFee = %s, %v, want %s", fee, err, want)
	}

	order.SubtractFee = true
	_, _, tx := build(t, driver, order)
	wantNumber(t, "the value", tx.Value(), gwei(1_000_000).Sub(chain.Units(1_350_000_000).Mul(21000)).Sub(l1))
	order.MaxFee = l1
	_, err = driver.Build(t.Context(), order)
	wantFault(t, err, fault.Limited, "fee_above_maximum")

	n.update(func(n *fakeNode) { n.blocks[2].receipts[0]["l1Fee"] = "0x64" })
	hash := n.blocks[2].txs[0]["hash"].(string)

	st, err := driver.Status(t.Context(), chain.Signed{TxHash: hash, From: sender().Address})
	if want := gwei(21000).Add(chain.Units(100)); err != nil || st.Fee != want {
		t.Errorf("Status = %+v, %v, want a fee of %s", st, err, want)
	}
}

func TestOPStackNetworksHaveTheirOracle(t *testing.T) {
	for _, network := range []chain.Network{evm.Optimism, evm.OPSepolia, evm.Base, evm.BaseSepolia} {
		n := newFakeNode(5)
		n.chainID = network.ChainID
		n.seal(0)

		called := false
		n.answer = func(c rpcCall) (any, bool) {
			called = called || c.Method == "eth_call"
			return nil, false
		}
		driver := driverOf(t, n, func(c *evm.Config) { c.Network = network })

		order := nativeOrder(driver)
		if _, err := driver.EstimateFee(t.Context(), order); err != nil || !called {
			t.Errorf("%s: %v, the oracle was asked: %t", network.Slug, err, called)
		}
	}
}

func TestNodeWithoutPriorityFeeMethod(t *testing.T) {
	n := newFakeNode(5)
	n.answer = func(c rpcCall) (any, bool) {
		switch c.Method {
		case "eth_maxPriorityFeePerGas":
			return rpcError{-32601, "no such method"}, true
		case "eth_gasPrice":
			return hexutil.Uint64(1_300_000_000), true
		}

		return nil, false
	}
	driver := driverOf(t, n)
	_, _, tx := build(t, driver, nativeOrder(driver))
	wantNumber(t, "the priority price", tx.GasTipCap(), chain.Units(300_000_000))
}

func TestRefusedTransferIsNotPayable(t *testing.T) {
	for _, refused := range []rpcError{
		{3, "execution reverted: blocked"},
		{-32015, "VM execution error"},
		{-32000, "Execution reverted"},
		{-32000, "gas required exceeds allowance (30000000)"},
	} {
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) { return refused, c.Method == "eth_estimateGas" }
		driver := driverOf(t, n)
		_, err := driver.Build(t.Context(), nativeOrder(driver))
		wantFault(t, err, fault.Invalid, "destination_not_payable")
	}

	synctest.Test(t, func(t *testing.T) { // anything else decides nothing
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) {
			return rpcError{-32000, "header not found"}, c.Method == "eth_estimateGas"
		}
		driver := driverOf(t, n)
		_, err := driver.Build(t.Context(), nativeOrder(driver))
		wantFault(t, err, fault.Unavailable, "node_unavailable")
	})
}

// A destination that one node of two says to revert is payable while the other one estimates the transfer.
func TestOneNodeRefusesNoDestination(t *testing.T) {
	liar, honest := newFakeNode(5), newFakeNode(5)
	liar.answer = func(c rpcCall) (any, bool) {
		return rpcError{3, "execution reverted"}, c.Method == "eth_estimateGas"
	}

	for name, c := range map[string]struct {
		nodes   fakeTransport
		refused bool
	}{
		"the liar first":        {fakeTransport{"a": liar, "b": honest}, false},
		"the liar second":       {fakeTransport{"a": honest, "b": liar}, false},
		"two nodes refuse":      {fakeTransport{"a": liar, "b": liar}, true},
		"the other one is down": {fakeTransport{"a": liar}, true},
	} {
		driver := fakeDriver(t, c.nodes, []string{"a", "b"})
		fee, err := driver.EstimateFee(t.Context(), nativeOrder(driver))

		if refused := fault.Code(
			err,
		) == "destination_not_payable"; refused != c.refused ||
			!refused && err != nil {
			t.Errorf("%s: %v, want that it is refused: %t", name, err, c.refused)
		}

		if err == nil && fee.IsZero() {
			t.Errorf("%s: no fee", name)
		}
	}
}

func TestOrdersThatCannotBePaid(t *testing.T) {
	driver := driverOf(t, newFakeNode(5))
	token, _ := driver.Network().Asset("USDX")

	for name, c := range map[string]struct {
		change func(order *chain.Order)
		word   error
		code   string
	}{
		"to nobody": {
			func(order *chain.Order) { order.Outputs[0].To = chain.Address(common.Address{}.Hex()) },
			fault.Invalid,
			"destination_not_payable",
		},
		"to the token itself": {
			func(order *chain.Order) { order.Outputs[0].To, order.Outputs[0].AssetID = token.Contract, token.ID },
			fault.Invalid,
			"destination_not_payable",
		},
		"nothing": {
			func(order *chain.Order) { order.Outputs[0].Amount = chain.Amount{} },
			fault.Invalid,
			"amount_too_small",
		},
		"two destinations": {
			func(order *chain.Order) { order.Outputs = append(order.Outputs, order.Outputs[0]) },
			fault.Unsupported,
			"outputs_unsupported",
		},
		"no destination": {func(order *chain.Order) { order.Outputs = nil }, fault.Unsupported, "outputs_unsupported"},
		"somebody else's fee": {
			func(order *chain.Order) { order.FeePayer = &chain.Party{Address: chain.Address(payer.Hex())} },
			fault.Unsupported,
			"fee_payer_unsupported",
		},
		"a fee out of a token": {
			func(order *chain.Order) { order.SubtractFee, order.Outputs[0].AssetID = true, token.ID },
			fault.Invalid,
			"subtract_fee_invalid",
		},
		"from a bad address": {func(order *chain.Order) { order.From.Address = "x" }, fault.Invalid, "address_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			order := nativeOrder(driver)
			c.change(&order)
			_, err := driver.Build(t.Context(), order)
			wantFault(t, err, c.word, c.code)
			_, err = driver.EstimateFee(t.Context(), order)
			wantFault(t, err, c.word, c.code)
		})
	}

	order := nativeOrder(driver) // nothing to oneself displaces a nonce
	order.Outputs[0].To, order.Outputs[0].Amount = order.From.Address, chain.Amount{}
	build(t, driver, order)
}

func TestBroadcastVerdicts(t *testing.T) {
	unclear := fault.Unavailable
	for message, want := range map[string]struct {
		word error
		code string
	}{
		"already known":                            {nil, ""},
		"AlreadyKnown":                             {nil, ""},
		"Known transaction":                        {nil, ""},
		"transaction already imported":             {nil, ""},
		"nonce too low":                            {unclear, "node_unavailable"},
		"nonce too low: next nonce 5, tx nonce 3":  {unclear, "node_unavailable"},
		"nonce too high":                           {unclear, "node_unavailable"},
		"replacement transaction underpriced":      {unclear, "node_unavailable"},
		"transaction underpriced":                  {unclear, "node_unavailable"},
		"txpool is full":                           {unclear, "node_unavailable"},
		"max fee per gas less than block base fee": {unclear, "node_unavailable"},
		"tx fee (2.00 ether) exceeds the configured cap (1.00 ether)": {unclear, "node_unavailable"},
		"internal error": {unclear, "node_unavailable"},
		"insufficient funds for gas * price + value: balance 0": {fault.Invalid, "chain:insufficient_funds"},
		"rlp: expected input list":                              {fault.Invalid, "transaction_malformed"},
		"invalid sender":                                        {fault.Invalid, "transaction_malformed"},
		"intrinsic gas too low":                                 {fault.Invalid, "transaction_malformed"},
		"exceeds block gas limit":                               {fault.Invalid, "transaction_malformed"},
	} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(5)
				n.answer = func(c rpcCall) (any, bool) {
					return rpcError{-32000, message}, c.Method == "eth_sendRawTransaction"
				}
				driver := driverOf(t, n)
				_, signed, _ := build(t, driver, nativeOrder(driver))

				err := driver.Broadcast(t.Context(), signed)
				if want.word == nil {
					if err != nil {
						t.Fatal(err)
					}

					return
				}

				wantFault(t, err, want.word, want.code)
			})
		})
	}
}

func TestBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		poor, good := newFakeNode(5), newFakeNode(5)
		poor.answer = func(c rpcCall) (any, bool) {
			return rpcError{-32000, "insufficient funds"}, c.Method == "eth_sendRawTransaction"
		}

		var hash string

		good.answer = func(c rpcCall) (any, bool) { return hash, c.Method == "eth_sendRawTransaction" }
		driver := fakeDriver(t, fakeTransport{"a": poor, "b": good}, []string{"a", "b"})
		_, signed, _ := build(t, driver, nativeOrder(driver))

		hash = signed.TxHash
		if err := driver.Broadcast(t.Context(), signed); err != nil {
			t.Errorf("one node knows of the money: %v", err)
		}

		hash = common.MaxHash.Hex()

		wantFault(t, driver.Broadcast(t.Context(), signed), fault.Unavailable, "") // it took something else?
		good.update(func(n *fakeNode) {
			n.http = func(w http.ResponseWriter, _ []rpcCall) bool { w.WriteHeader(502); return true }
		})
		wantFault(t, driver.Broadcast(t.Context(), signed), fault.Unavailable, "") // it may have taken it
		onlyPoor := driverOf(t, poor)
		wantFault(t, onlyPoor.Broadcast(t.Context(), signed), fault.Invalid, "chain:insufficient_funds")

		poor.resetRequests()

		broken := signed
		broken.Raw = signed.Raw[:len(signed.Raw)-1]
		wantFault(t, onlyPoor.Broadcast(t.Context(), broken), fault.Invalid, "transaction_malformed")

		other := signed
		other.TxHash = common.MaxHash.Hex()
		wantFault(t, onlyPoor.Broadcast(t.Context(), other), fault.Invalid, "transaction_malformed")
		foreign := driverOf(t, poor, func(c *evm.Config) { c.Network.ChainID = 1 })
		wantFault(t, foreign.Broadcast(t.Context(), signed), fault.Invalid, "transaction_foreign")

		if len(poor.requests) != 0 {
			t.Errorf("bytes that are no good were sent: %v", poor.requests)
		}
	})
}

// Nodes refuse included bytes with messages about the nonce; the network has them all the same.
func TestBroadcastOfIncludedBytesSucceeds(t *testing.T) {
	n := newFakeNode(5)
	driver := driverOf(t, n)
	_, signed, _ := build(t, driver, nativeOrder(driver))
	n.answer = func(c rpcCall) (any, bool) {
		switch c.Method {
		case "eth_sendRawTransaction":
			return rpcError{-32000, "nonce too low"}, true
		case "eth_getTransactionByHash":
			tx := n.blocks[2].txs[0]
			tx["hash"] = signed.TxHash

			return tx, true
		}

		return nil, false
	}

	if err := driver.Broadcast(t.Context(), signed); err != nil {
		t.Error(err)
	}
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(10) // safe 8, final 6
		driver := driverOf(t, n)
		status := func(hash string) chain.TxStatus {
			t.Helper()

			tx := chain.Signed{TxHash: hash, From: sender().Address, Nonce: 3}

			st, err := driver.Status(t.Context(), tx)
			if err != nil {
				t.Fatal(err)
			}

			return st
		}

		hashAt := func(height int) string { return n.blocks[height].txs[0]["hash"].(string) }
		for height, final := range map[int]bool{6: true, 7: false} {
			st := status(hashAt(height))
			if st.State != chain.TxIncluded || st.Final != final ||
				st.Block.Hash != n.blocks[height].hash() ||
				len(st.Transfers) != 2 ||
				st.Fee != gwei(21000) {
				t.Errorf("at %d: %+v", height, st)
			}
		}

		n.update(func(n *fakeNode) { n.blocks[5].receipts[0]["status"] = "0x0"; n.seal(5) })

		if st := status(hashAt(5)); !st.Reverted || len(st.Transfers) != 0 || st.Fee.IsZero() {
			t.Errorf("reverted: %+v", st)
		}

		unknown := common.MaxHash.Hex()
		if st := status(unknown); st.State != chain.TxUnknown {
			t.Errorf("unknown: %+v", st)
		}
		// Waiting.
		waiting := jsonObject{"to": payee.Hex(), "value": "0x1", "nonce": "0x3"}
		sealTx(waiting, fakeChainID)
		n.update(func(n *fakeNode) {
			n.answer = func(c rpcCall) (any, bool) { return waiting, c.Method == "eth_getTransactionByHash" }
		})

		if st := status(waiting["hash"].(string)); st.State != chain.TxPooled {
			t.Errorf("waiting: %+v", st)
		}
		// A receipt of a block that left the chain decides nothing.
		orphan := n.blocks[7].receipts[0]
		n.update(func(n *fakeNode) {
			n.answer = nil
			orphan["blockHash"] = common.MaxHash.Hex()
		})

		orphaned := chain.Signed{TxHash: hashAt(7), From: sender().Address}
		if _, err := driver.Status(t.Context(), orphaned); err == nil {
			t.Error("a receipt of another block counts")
		} else {
			wantFault(t, err, fault.Unavailable, "")
		}
	})
}

// Whatever one node, or both, deny: that bytes are dead is proven from blocks, never by an answer about a hash.
func TestUnknownTransactionIsNeverDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newFakeNode(10), newFakeNode(10)
		used := func(c rpcCall) (any, bool) { return "0x9", c.Method == "eth_getTransactionCount" }
		first.answer, second.answer = used, used
		driver := fakeDriver(t, fakeTransport{"a": first, "b": second}, []string{"a", "b"})
		denied := chain.Signed{TxHash: common.MaxHash.Hex(), From: sender().Address, Nonce: 3}

		st, err := driver.Status(t.Context(), denied)
		if err != nil || st.State != chain.TxUnknown || st.Reason != "" {
			t.Errorf("%+v, %v, want %s", st, err, chain.TxUnknown)
		}
	})
}

func TestFinalityFollowsTheRule(t *testing.T) {
	for name, c := range map[string]struct {
		rule  chain.Rule
		mute  bool // the node names no safe and final blocks
		final int  // newest final height of a chain with tip 10
	}{
		"confirmations":             {chain.RuleConfirmations, false, 8},
		"safe":                      {chain.RuleSafe, false, 8},
		"finalized":                 {chain.RuleFinalized, false, 6},
		"finalized without a block": {chain.RuleFinalized, true, 8},
		"safe without a block":      {chain.RuleSafe, true, 8},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(10)
			n.answer = func(call rpcCall) (any, bool) {
				return nil, c.mute && (call.param(0) == "safe" || call.param(0) == "finalized")
			}

			driver := driverOf(t, n, func(config *evm.Config) { config.Network.Rule = c.rule })
			for height := 5; height <= 10; height++ {
				hash := n.blocks[height].txs[0]["hash"].(string)

				st, err := driver.Status(t.Context(), chain.Signed{TxHash: hash, From: sender().Address})
				if err != nil || st.Final != (height <= c.final) {
					t.Errorf("at %d: %+v, %v", height, st, err)
				}
			}
		})
	}
}
