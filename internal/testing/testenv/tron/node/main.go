// Command node is a strict fake of a Tron full node for tests: a chain of its own behind the HTTP
// interface of java-tron.
//
// What is real: the protobuf of transactions is parsed by its descriptors, and refused where it is
// not written as protobuf libraries write it; transaction ids, signatures, expirations and
// reference blocks are checked; contracts run in go-ethereum's EVM; blocks are linked by ids that
// are computed as java-tron computes them; bandwidth, energy, account activation and memo fees are
// charged by java-tron's rules, and a broadcast changes what the full node (not the solidified
// interface) says of an account at once, as java-tron's does.
//
// What is simulated: blocks come when a test asks for them, and nobody signs them; the newest
// solidified block is a fixed number of blocks behind; energy is the EVM's gas at Istanbul's
// prices, not TVM's; used bandwidth and energy do not recover; the roots in block headers are
// hashes of what is there and prove nothing; contract types other than the two that move money are
// refused.
//
// It is a module of its own, so that go-ethereum's state database does not become a dependency of
// the library.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	configPath := flag.String("config", "", "path of a JSON file with the chain to make (type Config)")

	flag.Parse()

	if err := run(*configPath); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(configPath string) error {
	var c Config

	if configPath != "" {
		text, err := os.ReadFile(configPath)
		if err != nil {
			return err
		}

		if err := strictJSON(text, &c); err != nil {
			return fmt.Errorf("%s: %w", configPath, err)
		}
	}

	n, err := newNode(c)
	if err != nil {
		return err
	}
	// Port 0 leaves the choice to the system, so that no port is taken away between choosing it and
	// listening on it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	hello, err := json.Marshal(
		map[string]any{
			"address":   l.Addr().String(),
			"genesis":   hexBytes(n.blocks[0].id[:]),
			"contracts": n.deployed,
		},
	)
	if err != nil {
		return err
	}

	fmt.Printf("ready %s\n", hello)

	return http.Serve(l, n)
}

// Config says what chain to make. The zero value is one with java-tron's usual prices and nobody on it.
type Config struct {
	// Balances are what accounts hold from the first block on, in sun, by address in hex (41…).
	Balances map[string]int64 `json:"balances"`
	// Contracts are deployed before the first block.
	Contracts []Deployment `json:"contracts"`
	// SolidLag is how many blocks the newest solidified block is behind the newest. Defaults to 18.
	SolidLag int `json:"solid_lag"`
	// Parameters change chain parameters by their key in getchainparameters.
	Parameters map[string]int64 `json:"parameters"`
	// EnergyFactor multiplies the energy of every call, as the dynamic energy model does for
	// contracts that are used much. Defaults to 1.
	EnergyFactor uint64 `json:"energy_factor"`
	// HideInternal leaves internal_transactions out of answers, as nodes without vm.saveInternalTx do.
	HideInternal bool `json:"hide_internal"`
	// Genesis is any text; chains with different texts are different networks.
	Genesis string `json:"genesis"`
}

// Deployment is a contract to deploy.
type Deployment struct {
	// Bytecode is the creation code with encoded arguments, in hex.
	Bytecode string `json:"bytecode"`
	// Calls are made after it, in order, by the deployer (an address without a key).
	Calls []string `json:"calls"`
}
