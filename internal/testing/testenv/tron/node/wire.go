package main

// The protobuf of transactions, by descriptors: independent of the encoder that is tested against
// this node. Source: java-tron, protocol/src/main/protos/core/Tron.proto,
// contract/balance_contract.proto, contract/smart_contract.proto.

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type fieldSpec struct {
	name     string
	number   int32
	kind     descriptorpb.FieldDescriptorProto_Type
	repeated bool
	message  string
}

const (
	tBytes   = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	tInt64   = descriptorpb.FieldDescriptorProto_TYPE_INT64
	tInt32   = descriptorpb.FieldDescriptorProto_TYPE_INT32
	tBool    = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	tString  = descriptorpb.FieldDescriptorProto_TYPE_STRING
	tMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
)

// specs are the messages; an enumeration is read as its number, and Any by its two fields.
var specs = map[string][]fieldSpec{
	"Transaction": {{"raw_data", 1, tMessage, false, "raw"}, {"signature", 2, tBytes, true, ""}},
	// IncludedTransaction is a Transaction in a block, with its result; the messages in it are bytes here.
	"IncludedTransaction": {
		{"raw_data", 1, tBytes, false, ""},
		{"signature", 2, tBytes, false, ""},
		{"ret", 5, tBytes, false, ""},
	},
	"Result": {{"contractRet", 3, tInt32, false, ""}},
	"raw": {
		{"ref_block_bytes", 1, tBytes, false, ""},
		{"ref_block_num", 3, tInt64, false, ""},
		{"ref_block_hash", 4, tBytes, false, ""},
		{"expiration", 8, tInt64, false, ""},
		{"data", 10, tBytes, false, ""},
		{"contract", 11, tMessage, true, "Contract"},
		{"scripts", 12, tBytes, false, ""},
		{"timestamp", 14, tInt64, false, ""},
		{"fee_limit", 18, tInt64, false, ""},
	},
	"Contract": {
		{"type", 1, tInt32, false, ""},
		{"parameter", 2, tMessage, false, "Any"},
		{"provider", 3, tBytes, false, ""},
		{"ContractName", 4, tBytes, false, ""},
		{"Permission_id", 5, tInt32, false, ""},
	},
	"Any": {{"type_url", 1, tString, false, ""}, {"value", 2, tBytes, false, ""}},
	"TransferContract": {
		{"owner_address", 1, tBytes, false, ""},
		{"to_address", 2, tBytes, false, ""},
		{"amount", 3, tInt64, false, ""},
	},
	"TriggerSmartContract": {
		{"owner_address", 1, tBytes, false, ""},
		{"contract_address", 2, tBytes, false, ""},
		{"call_value", 3, tInt64, false, ""},
		{"data", 4, tBytes, false, ""},
		{"call_token_value", 5, tInt64, false, ""},
		{"token_id", 6, tInt64, false, ""},
	},
	"DelegateResourceContract": {
		{"owner_address", 1, tBytes, false, ""},
		{"resource", 2, tInt32, false, ""},
		{"balance", 3, tInt64, false, ""},
		{"receiver_address", 4, tBytes, false, ""},
		{"lock", 5, tBool, false, ""},
		{"lock_period", 6, tInt64, false, ""},
	},
	"UnDelegateResourceContract": {
		{"owner_address", 1, tBytes, false, ""},
		{"resource", 2, tInt32, false, ""},
		{"balance", 3, tInt64, false, ""},
		{"receiver_address", 4, tBytes, false, ""},
	},
	"BlockHeaderRaw": {
		{"timestamp", 1, tInt64, false, ""},
		{"txTrieRoot", 2, tBytes, false, ""},
		{"parentHash", 3, tBytes, false, ""},
		{"number", 7, tInt64, false, ""},
		{"witness_id", 8, tInt64, false, ""},
		{"witness_address", 9, tBytes, false, ""},
		{"version", 10, tInt32, false, ""},
	},
}

var descriptors = buildDescriptors()

func buildDescriptors() map[string]protoreflect.MessageDescriptor {
	file := &descriptorpb.FileDescriptorProto{
		Name:    proto.String("tron.proto"),
		Package: proto.String("protocol"),
		Syntax:  proto.String("proto3"),
	}
	for name, fields := range specs {
		m := &descriptorpb.DescriptorProto{Name: proto.String(name)}

		for _, f := range fields {
			label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
			if f.repeated {
				label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
			}

			d := &descriptorpb.FieldDescriptorProto{
				Name:     proto.String(f.name),
				JsonName: proto.String(f.name),
				Number:   proto.Int32(f.number),
				Type:     f.kind.Enum(),
				Label:    label.Enum(),
			}
			if f.message != "" {
				d.TypeName = proto.String(".protocol." + f.message)
			}

			m.Field = append(m.Field, d)
		}

		file.MessageType = append(file.MessageType, m)
	}

	built, err := protodesc.NewFile(file, nil)
	if err != nil {
		// they are constants of this program
		panic(fmt.Sprintf("node: the descriptors do not fit together: %v", err))
	}

	out := map[string]protoreflect.MessageDescriptor{}
	for name := range specs {
		out[name] = built.Messages().ByName(protoreflect.Name(name))
	}

	return out
}

// message is a parsed message with its fields by name.
type message struct{ m *dynamicpb.Message }

// parse reads the bytes of a message, and refuses unknown fields and any other than the canonical encoding.
func parse(name string, b []byte) (message, error) {
	m := dynamicpb.NewMessage(descriptors[name])
	if err := proto.Unmarshal(b, m); err != nil {
		return message{}, err
	}

	if len(m.GetUnknown()) > 0 {
		return message{}, fmt.Errorf("%s has unknown fields", name)
	}

	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil || !bytes.Equal(again, b) {
		return message{}, fmt.Errorf("%s is not written in the canonical order", name)
	}

	return message{m}, nil
}

func newMessage(name string, fields map[string]any) message {
	m := dynamicpb.NewMessage(descriptors[name])
	for k, v := range fields {
		m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(k)), protoreflect.ValueOf(v))
	}

	return message{m}
}

func (m message) encode() []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.m)
	if err != nil {
		panic(fmt.Sprintf("node: a message of numbers and bytes does not encode: %v", err))
	}

	return b
}

func (m message) get(name string) protoreflect.Value {
	return m.m.Get(m.m.Descriptor().Fields().ByName(protoreflect.Name(name)))
}
func (m message) bytes(name string) []byte { return m.get(name).Bytes() }
func (m message) int(name string) int64    { return m.get(name).Int() }

func (m message) sub(name string) message {
	return message{m.get(name).Message().Interface().(*dynamicpb.Message)}
}

func (m message) list(name string) protoreflect.List { return m.get(name).List() }

type address = common.Address

const addressPrefix = 0x41

func prefixed(b []byte) (address, bool) {
	if len(b) != 21 || b[0] != addressPrefix {
		return address{}, false
	}

	return address(b[1:]), true
}

func prefixedBytes(a address) []byte { return append([]byte{addressPrefix}, a[:]...) }

const (
	typeTransfer   = 1
	typeTrigger    = 31
	typeDelegate   = 57
	typeUndelegate = 58
)

var typeNames = map[int64]string{
	typeTransfer:   "TransferContract",
	typeTrigger:    "TriggerSmartContract",
	typeDelegate:   "DelegateResourceContract",
	typeUndelegate: "UnDelegateResourceContract",
}

// transaction is a parsed transaction.
type transaction struct {
	bytes     []byte // the whole message Transaction
	raw       []byte
	id        [32]byte
	signature []byte

	refBytes, refHash, memo         []byte
	expiration, timestamp, feeLimit int64

	kind       int64
	permission int64
	owner      address
	to         address // of a transfer; the contract of a call; the receiver of a delegation
	amount     int64   // of a transfer; the call value of a call; the stake of a delegation
	data       []byte
	resource   int64 // of a delegation: 1 is energy
}

// contractResults are the names of Transaction.Result.contractResult that outcomes have.
var contractResults = map[string]int32{
	"SUCCESS":              1,
	"REVERT":               2,
	"BAD_JUMP_DESTINATION": 3,
	"OUT_OF_ENERGY":        10,
	"UNKNOWN":              13,
}

// included returns the transaction as its block has it, with the name of its result.
func (t *transaction) included(result string) []byte {
	number, known := contractResults[result]
	if !known {
		panic("node: a transaction has the unknown result " + result)
	}

	return newMessage("IncludedTransaction", map[string]any{
		"raw_data":  t.raw,
		"signature": t.signature,
		"ret":       newMessage("Result", map[string]any{"contractRet": number}).encode(),
	}).encode()
}

var errNoContract = errors.New("no contract")

// parseTransaction reads a transaction strictly. An error is one of form, which java-tron answers
// from its parser.
func parseTransaction(b []byte) (*transaction, error) {
	m, err := parse("Transaction", b)
	if err != nil {
		return nil, err
	}

	rawMessage := m.sub("raw_data")

	t := &transaction{bytes: b, raw: rawMessage.encode()}
	if len(rawMessage.m.GetUnknown()) > 0 {
		return nil, errors.New("raw_data has unknown fields")
	}

	t.id = sha256.Sum256(t.raw)

	signatures := m.list("signature")
	if signatures.Len() > 0 {
		t.signature = signatures.Get(0).Bytes()
	}

	if signatures.Len() > 1 {
		return nil, errors.New("this node knows no accounts with several keys")
	}

	t.refBytes = rawMessage.bytes("ref_block_bytes")
	t.refHash = rawMessage.bytes("ref_block_hash")
	t.memo = rawMessage.bytes("data")
	t.expiration = rawMessage.int("expiration")
	t.timestamp = rawMessage.int("timestamp")
	t.feeLimit = rawMessage.int("fee_limit")

	contracts := rawMessage.list("contract")
	if contracts.Len() != 1 {
		return nil, errNoContract
	}

	if err := t.readContract(contracts.Get(0)); err != nil {
		return nil, err
	}

	return t, nil
}

// readContract sets the kind of the transaction, and reads the message of that kind.
func (t *transaction) readContract(v protoreflect.Value) error {
	contract := message{v.Message().Interface().(*dynamicpb.Message)}
	t.kind = contract.int("type")

	name, known := typeNames[t.kind]
	if !known || len(contract.m.GetUnknown()) > 0 {
		return fmt.Errorf("contract type %d is not one of this node", t.kind)
	}

	t.permission = contract.int("Permission_id")

	parameter := contract.sub("parameter")
	if got, want := parameter.get("type_url").String(), "type.googleapis.com/protocol."+name; got != want {
		return fmt.Errorf("the parameter is a %q, want %q", got, want)
	}

	value, err := parse(name, parameter.bytes("value"))
	if err != nil {
		return err
	}

	return t.readValue(value)
}

// readValue reads the message of the transaction's kind.
func (t *transaction) readValue(value message) error {
	var ownerOK, toOK bool

	t.owner, ownerOK = prefixed(value.bytes("owner_address"))
	switch t.kind {
	case typeTransfer:
		t.to, toOK = prefixed(value.bytes("to_address"))
		t.amount = value.int("amount")
	case typeDelegate, typeUndelegate:
		t.to, toOK = prefixed(value.bytes("receiver_address"))
		t.amount, t.resource = value.int("balance"), value.int("resource")

		if t.kind == typeDelegate && value.get("lock").Bool() {
			return errors.New("this node locks no delegations")
		}
	default:
		t.to, toOK = prefixed(value.bytes("contract_address"))

		t.amount, t.data = value.int("call_value"), value.bytes("data")
		if value.int("call_token_value") != 0 || value.int("token_id") != 0 {
			return errors.New("this node has no TRC-10 tokens")
		}
	}

	if !ownerOK || !toOK {
		return errors.New("an address is no address")
	}

	return nil
}

// bandwidth is the size that bandwidth is charged for. Source: BandwidthProcessor.consume,
// Constant.MAX_RESULT_SIZE_IN_TX.
func (t *transaction) bandwidth() int64 { return int64(len(t.bytes)) + 64 }
