package main

// The control interface, by which tests drive the chain. Every path is /control/<name> with a JSON body,
// and returns a JSON object.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type control struct {
	Blocks  int      `json:"blocks"`
	Depth   int      `json:"depth"`
	Keep    []string `json:"keep"`
	Below   uint64   `json:"below"`
	Millis  int64    `json:"millis"`
	Address string   `json:"address"`
	Energy  int64    `json:"energy"`
	Net     int64    `json:"net"`
	Key     string   `json:"key"`
	Value   int64    `json:"value"`
	Slot    string   `json:"slot"`
	Word    string   `json:"word"`
	Send    *payment `json:"send"`
}

// payment is a transaction of somebody outside, which this node makes and signs for the test.
type payment struct {
	PrivateKey string `json:"private_key"`
	To         string `json:"to"`
	Amount     int64  `json:"amount"`
	Data       string `json:"data"` // of a call; a transfer of coin has none
	FeeLimit   int64  `json:"fee_limit"`
	Memo       string `json:"memo"`
	// Stake is DelegateResourceContract or UnDelegateResourceContract, by number, of Amount sun for energy.
	Stake int64 `json:"stake"`
}

func (n *node) serveControl(w http.ResponseWriter, name string, body []byte) {
	answer, err := n.control(name, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	w.Header().Set("Content-Type", "application/json")

	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (n *node) control(name string, body []byte) (object, error) {
	var c control
	if err := strictJSON(body, &c); err != nil {
		return nil, err
	}

	if name == "send" {
		return n.send(c.Send)
	}

	if err := n.apply(name, c); err != nil {
		return nil, err
	}

	return object{
		"tip":      n.head().height,
		"solid":    n.solid().height,
		"pool":     len(n.pool),
		"requests": n.seen,
		"time":     n.head().timestamp,
	}, nil
}

// apply changes the node's state as a control says.
func (n *node) apply(name string, c control) error {
	switch name {
	case "mine":
		return n.mineBlocks(c.Blocks)
	case "fork":
		return n.fork(c.Depth, c.Keep)
	case "prune": // the blocks below a height are dropped
		n.oldest = c.Below
	case "skip": // time moves on
		n.skip += c.Millis
	case "stake": // an account gets energy and bandwidth as if it had staked coin
		return n.stake(c)
	case "freeze": // an account stakes so many sun for energy, which it can delegate
		return n.change(c.Address, func(a *account) { a.staked = c.Value })
	case "recover": // a day passes: what an account used of its resources is there again
		return n.change(c.Address, func(a *account) { a.energyUsed, a.freeUsed, a.netUsed = 0, 0, 0 })
	case "token": // somebody sends the account TRC-10 tokens; no transaction of this node moves any
		return n.change(c.Address, func(a *account) {
			tokens := maps.Clone(a.tokens) // earlier states share it
			if tokens == nil {
				tokens = map[string]int64{}
			}

			tokens[c.Key] += c.Value
			a.tokens = tokens
		})
	case "permission": // the account's own key is left with an active permission alone
		return n.change(c.Address, func(a *account) { a.permission = c.Value })
	case "parameter":
		if _, known := n.params[c.Key]; !known {
			return fmt.Errorf("chain parameter %q is not one of this node", c.Key)
		}

		n.params[c.Key] = c.Value
	case "energyfactor":
		n.config.EnergyFactor = uint64(c.Value)
	case "drop": // the pool is forgotten
		n.pool = nil
		return n.repool()
	case "storage": // a word of a contract's storage is another one
		return n.setStorage(c)
	case "state":
	default:
		return fmt.Errorf("no control %q", name)
	}

	return nil
}

func (n *node) send(p *payment) (object, error) {
	t, err := n.makePayment(p)
	if err != nil {
		return nil, err
	}

	if refused := n.broadcast(t); refused != nil {
		return nil, refused
	}

	return object{"txid": hexBytes(t.id[:]), "transaction": hexBytes(t.bytes)}, nil
}

func (n *node) stake(c control) error {
	return n.change(c.Address, func(a *account) { a.energyLimit, a.netLimit = c.Energy, c.Net })
}

// change changes an active account, in the newest block's state and in the pool's.
func (n *node) change(hex string, do func(*account)) error {
	a, ok := addressHex(hex)
	if !ok {
		return fmt.Errorf("%q is not an address", hex)
	}

	for _, accounts := range []map[address]account{n.head().state.accounts, n.pending.accounts} {
		acc, ok := accounts[a]
		if !ok {
			return fmt.Errorf("account %s is not active", hex)
		}

		do(&acc)

		accounts[a] = acc
	}

	return nil
}

func (n *node) setStorage(c control) error {
	a, ok := addressHex(c.Address)
	if !ok {
		return fmt.Errorf("%q is not an address", c.Address)
	}

	head := n.head()

	ws, err := n.store.open(head.state)
	if err != nil {
		return err
	}

	ws.db.SetState(a, common.HexToHash(c.Slot), common.HexToHash(c.Word))

	if head.state, err = ws.commit(head.height); err != nil {
		return err
	}

	return n.repool()
}

// lastPayment keeps the dates of payments apart, so that two equal ones differ.
var lastPayment int64

func (n *node) makePayment(p *payment) (*transaction, error) {
	if p == nil {
		return nil, errors.New("nothing to send")
	}

	key, err := crypto.HexToECDSA(p.PrivateKey)
	if err != nil {
		return nil, err
	}

	to, ok := addressHex(p.To)
	if !ok {
		return nil, fmt.Errorf("%q is not an address", p.To)
	}

	data, err := hex.DecodeString(p.Data)
	if err != nil {
		return nil, err
	}

	contract := newContract(crypto.PubkeyToAddress(key.PublicKey), to, p.Amount, data, p.Stake)

	lastPayment = max(time.Now().UnixMilli(), lastPayment+1)
	id := n.solid().id
	raw := newMessage("raw", map[string]any{
		"ref_block_bytes": id[6:8],
		"ref_block_hash":  id[8:16],
		"expiration":      n.now() + 60_000,
		"timestamp":       lastPayment,
		"fee_limit":       p.FeeLimit,
		"data":            []byte(p.Memo),
	})
	raw.m.Mutable(raw.field("contract")).List().Append(protoreflect.ValueOfMessage(contract.m))
	digest := sha256.Sum256(raw.encode())

	signature, err := crypto.Sign(digest[:], key)
	if err != nil {
		return nil, err
	}

	signature[64] += 27
	tx := newMessage("Transaction", nil)
	tx.set("raw_data", raw)
	tx.m.Mutable(tx.field("signature")).List().Append(protoreflect.ValueOfBytes(signature))

	return parseTransaction(tx.encode())
}

// newContract returns the message Contract of a call with data, of a delegation of the kind stake, or of a transfer.
// amount is in sun.
func newContract(from, to address, amount int64, data []byte, stake int64) message {
	kind, fields := int64(typeTransfer), map[string]any{
		"owner_address": prefixedBytes(from),
		"to_address":    prefixedBytes(to),
		"amount":        amount,
	}
	if len(data) > 0 {
		kind, fields = typeTrigger, map[string]any{
			"owner_address":    prefixedBytes(from),
			"contract_address": prefixedBytes(to),
			"call_value":       amount,
			"data":             data,
		}
	}

	if stake != 0 {
		kind, fields = stake, map[string]any{
			"owner_address":    prefixedBytes(from),
			"resource":         int32(energyResource),
			"balance":          amount,
			"receiver_address": prefixedBytes(to),
		}
	}

	contract := newMessage("Contract", map[string]any{"type": int32(kind)})
	contract.set("parameter", newMessage("Any", map[string]any{
		"type_url": "type.googleapis.com/protocol." + typeNames[kind],
		"value":    newMessage(typeNames[kind], fields).encode(),
	}))

	return contract
}

func (m message) field(name string) protoreflect.FieldDescriptor {
	return m.m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (m message) set(name string, v message) {
	m.m.Set(m.field(name), protoreflect.ValueOfMessage(v.m))
}
