// Package contracts holds compiled contracts for tests on Ethereum-like development chains. Their
// source is Tokens.sol; `make contracts` compiles it again.
package contracts

import (
	"embed"
	"encoding/json"
	"fmt"
)

// Contract is a compiled contract.
type Contract struct {
	ABI      string // the interface, in JSON
	Bytecode string // what a creating transaction carries before the encoded arguments, in hex with 0x
}

//go:embed *.json
var compiled embed.FS

var (
	// TestERC20 is an ERC-20 token as the standard has it. Constructor: name string, symbol string,
	// decimals uint8.
	TestERC20 = load("TestERC20")
	// USDTLike is a token whose transfer, transferFrom and approve return nothing, with 6 decimals
	// and an optional fee, pause and blacklist. No constructor arguments.
	USDTLike = load("USDTLike")
	// FalseOnSuccess is USDTLike whose transfer returns false on success, as USDT on Tron does. No
	// constructor arguments.
	FalseOnSuccess = load("FalseOnSuccess")
	// Forwarder sends native coin on to one or many receivers, by internal calls. No constructor arguments.
	Forwarder = load("Forwarder")
	// GrossFee is a token whose Transfer has the gross amount of which a hundredth is taken: with a second
	// Transfer out of the receiver, or silently. Constructor: silent bool.
	GrossFee = load("GrossFee")
	// StatePayer pays what it holds; receiver, amount and success follow from the block's miner. No
	// constructor arguments.
	StatePayer = load("StatePayer")
)

// load reads one embedded contract. What is embedded does not change after the build, so a fault in
// it is a fault of the program.
func load(name string) Contract {
	text, err := compiled.ReadFile(name + ".json")
	if err != nil {
		panic(fmt.Sprintf("contracts: %v", err))
	}

	var c struct {
		ABI      json.RawMessage `json:"abi"`
		Bytecode string          `json:"bytecode"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		panic(fmt.Sprintf("contracts: %s: %v", name, err))
	}

	return Contract{ABI: string(c.ABI), Bytecode: c.Bytecode}
}
