package solana

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ interface {
	chain.DurableNonces
	chain.NonceRefuser
} = (*driver)(nil)

// NonceAccounts returns the configured nonce accounts of an address. It does no I/O.
func (d *driver) NonceAccounts(address chain.Address) []chain.Address {
	return slices.Clone(d.config.NonceAccounts[address])
}

// checkNonceAccounts checks that each nonce account is an address, and the account of one wallet.
func (c Config) checkNonceAccounts() error {
	seen := map[chain.Address]bool{}

	for owner, accounts := range c.NonceAccounts {
		if _, err := parseKey(string(owner)); err != nil {
			return invalidConfig("NonceAccounts names %q, which is no address", owner)
		}

		for _, account := range accounts {
			if _, err := parseKey(string(account)); err != nil || account == owner || seen[account] {
				return invalidConfig(
					"NonceAccounts of %s: %q is no address, the wallet itself, or named twice",
					owner,
					account,
				)
			}

			seen[account] = true
		}
	}

	return nil
}

// ReadNonces returns the state of nonce accounts in the newest final blocks. An account is usable when as many nodes as
// prove something, two or the only one, show it with the same value and under the authority of the address.
func (d *driver) ReadNonces(
	ctx context.Context,
	address chain.Address,
	accounts []chain.Address,
) ([]chain.NonceAccount, error) {
	keys := make([]solanago.PublicKey, len(accounts))

	for i, account := range accounts {
		key, err := parseKey(string(account))
		if err != nil {
			return nil, err
		}

		keys[i] = key
	}

	shown := make([][]chain.NonceAccount, len(accounts)) // by account, then node

	err := d.askAll(ctx, func(e *endpoint) error {
		states, slot, err := e.accountsAt(ctx, final, keys, 0)
		if err != nil {
			return err
		}

		at, err := e.header(ctx, slot)
		if err != nil {
			return e.blockError(ctx, 0, err)
		}

		for i, state := range states {
			nonce := chain.DurableNonce{Account: accounts[i], Height: at.Height}
			shown[i] = append(shown[i], parseNonce(state).of(address, nonce))
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	read := make([]chain.NonceAccount, len(accounts))
	for i := range shown {
		read[i] = agreed(shown[i], min(2, len(d.nodes.Nodes)))
		if d.noncesOver.Load() && read[i].Unusable == "" {
			read[i].Unusable = "the network takes no transaction with a durable nonce any more"
		}
	}

	return read, nil
}

// askAll calls every node once. An error is that of the last node, where fewer answered than prove something.
func (d *driver) askAll(ctx context.Context, call func(e *endpoint) error) error {
	var last error

	answered := 0

	for _, e := range d.nodes.Nodes {
		err := d.nodes.Check(ctx, e)
		if err == nil {
			err = call(e)
		}

		if ctx.Err() != nil {
			return failover.Fault(d.network.Slug, ctx.Err())
		}

		if err != nil {
			last = err
		} else {
			answered++
		}
	}

	if answered < min(2, len(d.nodes.Nodes)) {
		return failover.Fault(d.network.Slug, last)
	}

	return nil
}

// agreed returns the state that a number of nodes show, at the lowest of their heights; a disputed one where no such
// number shows the same.
func agreed(shown []chain.NonceAccount, nodes int) chain.NonceAccount {
	for _, state := range shown {
		same := 0

		for _, other := range shown {
			if other.Value == state.Value && other.Unusable == state.Unusable {
				state.Height = min(state.Height, other.Height)
				same++
			}
		}

		if same >= nodes {
			return state
		}
	}

	return chain.NonceAccount{
		DurableNonce: chain.DurableNonce{Account: shown[0].Account},
		Unusable:     "the nodes do not agree about it",
		Disputed:     true,
	}
}

// nonceState is a nonce account.
type nonceState struct {
	exists    bool // false for anything that is no initialized nonce account
	authority solanago.PublicKey
	value     string
}

// The layout of a nonce account: version and state of 4 bytes each, authority, value, and 8 bytes that are not read.
// Source: solana-sdk, nonce/src/versions.rs and state.rs.
const (
	nonceAccountSize = 80
	nonceVersion     = 1 // version 0 holds a blockhash, which no transaction can use any more
	nonceInitialized = 1
)

func parseNonce(account *accountInfo) nonceState {
	if account == nil || account.Owner != solanago.SystemProgramID.String() ||
		len(account.Data) != nonceAccountSize ||
		binary.LittleEndian.Uint32(account.Data) != nonceVersion ||
		binary.LittleEndian.Uint32(account.Data[4:]) != nonceInitialized {
		return nonceState{}
	}

	return nonceState{
		exists:    true,
		authority: solanago.PublicKeyFromBytes(account.Data[8:40]),
		value:     solanago.HashFromBytes(account.Data[40:72]).String(),
	}
}

// of returns the state for transactions of an address.
func (s nonceState) of(address chain.Address, nonce chain.DurableNonce) chain.NonceAccount {
	nonce.Value = s.value

	switch {
	case !s.exists:
		return chain.NonceAccount{DurableNonce: nonce, Unusable: "it is closed, or no nonce account"}
	case s.authority.String() != string(address):
		return chain.NonceAccount{DurableNonce: nonce, Unusable: "its authority is " + s.authority.String()}
	}

	return chain.NonceAccount{DurableNonce: nonce}
}

// NonceUsed reports whether as many nodes as prove something have a final block in which the account of a nonce does
// not hold it. Its authority does not matter: it may be changed, and changed back.
func (d *driver) NonceUsed(
	ctx context.Context,
	nonce chain.DurableNonce,
) (used bool, at chain.Ref, err error) {
	return d.provenAtFinal(ctx, func(e *endpoint) (blockHeader, bool, error) {
		at, _, used, err := e.nonceUsed(ctx, nonce)

		return at, used, err
	})
}

// provenAtFinal reports whether as many nodes as prove something show the same of their newest final blocks. at is the
// latest of these.
func (d *driver) provenAtFinal(
	ctx context.Context,
	shows func(e *endpoint) (at blockHeader, shown bool, err error),
) (proven bool, at chain.Ref, err error) {
	proofs := 0

	err = d.askAll(ctx, func(e *endpoint) error {
		header, shown, err := shows(e)
		if err != nil || !shown {
			return err
		}

		if proofs++; header.Height >= at.Height {
			at = header.ref()
		}

		return nil
	})
	if err != nil || proofs < min(2, len(d.nodes.Nodes)) {
		return false, chain.Ref{}, err
	}

	return true, at, nil
}

// nonceState returns what the account of a nonce holds in the newest final block, and its slot.
func (e *endpoint) nonceState(
	ctx context.Context,
	nonce chain.DurableNonce,
	minSlot uint64,
) (state nonceState, slot uint64, err error) {
	key, err := parseKey(string(nonce.Account))
	if err != nil {
		return nonceState{}, 0, err
	}

	accounts, slot, err := e.accountsAt(ctx, final, []solanago.PublicKey{key}, minSlot)
	if err != nil {
		return nonceState{}, slot, err
	}

	return parseNonce(accounts[0]), slot, nil
}

// nonceUsed reports whether the account of a nonce holds something else in the newest final block, and which that is. A
// backend that has not reached the block in which the nonce was read shows what the account held before.
func (e *endpoint) nonceUsed(
	ctx context.Context,
	nonce chain.DurableNonce,
) (at blockHeader, slot uint64, used bool, err error) {
	state, slot, err := e.nonceState(ctx, nonce, 0)
	if err != nil || state.value == nonce.Value {
		return at, slot, false, err
	}

	at, err = e.header(ctx, slot)
	if err != nil {
		return at, slot, false, e.blockError(ctx, 0, err)
	}

	return at, slot, at.Height > nonce.Height, nil
}

// provesNonceUsed reports whether one node proves that a transaction can never be included, as its nonce was used, and
// whether the node knows the transaction. The account is read first and the transaction looked up where that slot is
// known, so that the lookup covers every block that could include it. The node must still have the blocks since the
// account held the nonce.
func (d *driver) provesNonceUsed(
	ctx context.Context,
	e *endpoint,
	tx chain.Signed,
) (used, known bool, err error) {
	_, slot, used, err := e.nonceUsed(ctx, *tx.DurableNonce)
	if err != nil {
		return false, false, err
	}

	status, err := d.nodeStatus(ctx, e, tx, slot)
	if err != nil || status.State != chain.TxUnknown {
		return false, err == nil, err
	}

	if !used {
		return false, false, nil
	}

	_, err = d.headerAt(ctx, e, tx.DurableNonce.Height)

	return err == nil, false, err
}

// NonceRefused implements chain.NonceRefuser. Nothing is asked until a node refused the transaction as it was sent.
// A nonce that an account held before a simulation and holds after it was held at that block too: none comes back.
func (d *driver) NonceRefused(
	ctx context.Context,
	signed chain.Signed,
) (refused bool, at chain.Ref, err error) {
	if _, doubted := d.doubted.Load(signed.TxHash); !doubted || signed.DurableNonce == nil {
		return false, chain.Ref{}, nil
	}

	refused, at, err = d.provenAtFinal(ctx, func(e *endpoint) (blockHeader, bool, error) {
		return e.refusesNonce(ctx, signed)
	})
	if refused {
		d.noncesOver.Store(true)
	}

	return refused, at, err
}

// refusesNonce reports whether one node refuses a transaction at a final block where its account holds its nonce, under
// the authority of its sender.
func (e *endpoint) refusesNonce(
	ctx context.Context,
	signed chain.Signed,
) (at blockHeader, refused bool, err error) {
	holds := func(minSlot uint64) (bool, uint64, error) {
		state, slot, err := e.nonceState(ctx, *signed.DurableNonce, minSlot)

		return state.value == signed.DurableNonce.Value &&
			state.authority.String() == string(signed.From), slot, err
	}

	held, slot, err := holds(0)
	if err != nil || !held {
		return at, false, err
	}

	var simulated struct {
		Context struct {
			Slot uint64 `json:"slot"`
		} `json:"context"`
		Value struct {
			Err json.RawMessage `json:"err"`
		} `json:"value"`
	}

	err = e.call(ctx, &simulated, "simulateTransaction", encodeBase64(signed.Raw), map[string]any{
		"commitment": final, "encoding": "base64", "minContextSlot": slot,
	})
	if err != nil || string(simulated.Value.Err) != `"BlockhashNotFound"` || simulated.Context.Slot < slot {
		return at, false, err
	}

	if held, _, err = holds(simulated.Context.Slot); err != nil || !held {
		return at, false, err
	}

	at, err = e.header(ctx, simulated.Context.Slot)

	// In the block that set a nonce no transaction can use it.
	return at, err == nil && at.Height > signed.DurableNonce.Height, err
}

// durableNonce is the nonce that a transaction uses.
type durableNonce struct {
	account solanago.PublicKey
	value   solanago.Hash
}

// newDurableNonce parses the nonce of an order; nil without one.
func newDurableNonce(order chain.Order) (*durableNonce, error) {
	if order.DurableNonce == nil {
		return nil, nil
	}

	account, err := parseKey(string(order.DurableNonce.Account))
	if err != nil {
		return nil, err
	}

	value, err := solanago.HashFromBase58(order.DurableNonce.Value)
	if err != nil || value.String() != order.DurableNonce.Value {
		return nil, fault.Wrap(
			err, fault.Invalid, "order_invalid", "the order from %s names a durable nonce that is none",
			order.From.Address,
		)
	}

	return &durableNonce{account, value}, nil
}

// advanceNonceData is the data of AdvanceNonceAccount. Source: solana-sdk, system-interface.
var advanceNonceData = []byte{4, 0, 0, 0}

// advanceNonce uses a nonce. It has to be the first instruction.
func advanceNonce(account, authority solanago.PublicKey) solanago.Instruction {
	return solanago.NewInstruction(solanago.SystemProgramID, solanago.AccountMetaSlice{
		solanago.Meta(account).WRITE(),
		solanago.Meta(solanago.SysVarRecentBlockHashesPubkey),
		solanago.Meta(authority).SIGNER(),
	}, advanceNonceData)
}

// nonceOf returns the nonce that a message of a sender uses; nil for one that rests on a blockhash.
func nonceOf(message solanago.Message, sender solanago.PublicKey) *durableNonce {
	if len(message.Instructions) == 0 {
		return nil
	}

	m := messageDecoder{message: message}

	program, accounts, ok := m.resolve(message.Instructions[0])
	if !ok || program != solanago.SystemProgramID || len(accounts) != 3 || accounts[2] != sender ||
		accounts[1] != solanago.SysVarRecentBlockHashesPubkey ||
		!bytes.Equal(message.Instructions[0].Data, advanceNonceData) {
		return nil
	}

	return &durableNonce{accounts[0], message.RecentBlockhash}
}

// checkNonce returns an error unless a message uses the nonce of its order, or none where the order has none.
func checkNonce(message solanago.Message, order chain.Order) error {
	wanted, err := newDurableNonce(order)
	if err != nil {
		return err
	}

	sender, err := parseKey(string(order.From.Address))
	if err != nil {
		return err
	}

	used := nonceOf(message, sender)
	if (used == nil) != (wanted == nil) || used != nil && *used != *wanted {
		return errors.New("it uses another durable nonce than its order, or none")
	}

	return nil
}
