//go:build unix

package canonical_test

// This file calls the node: plain JSON-RPC over HTTP, with types of its own.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/crypto/sha3"
)

// node is the real node, beside every proxy.
type node struct {
	t   *testing.T
	url string
}

type callError struct {
	Code    int
	Message string
}

func (e *callError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// try calls a method and decodes its result into result, unless that is nil.
func (n node) try(result any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}

	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}

	resp, err := http.Post(n.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	var answer struct {
		Result json.RawMessage
		Error  *callError
	}

	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}

	if answer.Error != nil {
		return answer.Error
	}

	if result == nil {
		return nil
	}

	return json.Unmarshal(answer.Result, result)
}

// call is try that has to succeed.
func (n node) call(result any, method string, params ...any) {
	n.t.Helper()

	if err := n.try(result, method, params...); err != nil {
		n.t.Fatalf("%s: %v", method, err)
	}
}

func (n node) mine(blocks int) {
	n.t.Helper()
	n.call(nil, "anvil_mine", hexOf(uint64(blocks)))
}

func (n node) tip() uint64 {
	n.t.Helper()

	var height string
	n.call(&height, "eth_blockNumber")

	return number(n.t, height).Uint64()
}

// send has the node sign and send a transaction, which waits in the pool.
func (n node) send(tx map[string]any) (hash string, err error) {
	return hash, n.try(&hash, "eth_sendTransaction", tx)
}

// held returns what an address holds of an asset at a height; "" is the coin.
func (n node) balance(token, address string, height uint64) *big.Int {
	n.t.Helper()

	var word string

	if token == "" {
		n.call(&word, "eth_getBalance", address, hexOf(height))
		return number(n.t, word)
	}

	n.call(&word, "eth_call", map[string]any{
		"to":   token,
		"data": data("balanceOf(address)", address),
	}, hexOf(height))

	return number(n.t, word)
}

// number parses a quantity, or a word of a contract's answer.
func number(t *testing.T, text string) *big.Int {
	t.Helper()

	n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "0x"), 16)
	if !ok {
		t.Fatalf("%q is no number", text)
	}

	return n
}

func hexOf(n uint64) string { return fmt.Sprintf("0x%x", n) }

// data returns a contract call's input: arguments are addresses, numbers or truths, a word each.
func data(signature string, args ...any) string {
	out := "0x" + hex.EncodeToString(keccak(signature)[:4])

	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			out += fmt.Sprintf("%064s", strings.ToLower(strings.TrimPrefix(arg, "0x")))
		case *big.Int:
			out += fmt.Sprintf("%064x", arg)
		case int:
			out += fmt.Sprintf("%064x", arg)
		default:
			panic(fmt.Sprintf("an argument of type %T", arg))
		}
	}

	return out
}

func keccak(text string) []byte {
	hash := sha3.NewLegacyKeccak256()
	hash.Write([]byte(text))

	return hash.Sum(nil)
}
