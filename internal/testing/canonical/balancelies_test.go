//go:build unix

package canonical_test

// This file holds what one of two nodes may say about balances, which no block proves.

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// asksBalance reports whether a call is for what an address holds, of coin or of a token.
func asksBalance(c rpcCall) bool {
	return len(c.Params) > 1 && (c.Method == "eth_getBalance" ||
		c.Method == "eth_call" && strings.Contains(string(c.Params[0]), data("balanceOf(address)")))
}

// oldBalances answers with what an address held some blocks before the one that is asked for.
func oldBalances(l *liar, blocks uint64) lie {
	return lie{ask: func(c *rpcCall) {
		if !asksBalance(*c) {
			return
		}

		var (
			at    struct{ BlockHash string }
			block struct{ Number string }
		)

		if json.Unmarshal(c.Params[1], &at) != nil || at.BlockHash == "" ||
			l.node.try(&block, "eth_getBlockByHash", at.BlockHash, false) != nil {
			return
		}

		height := quantity(block.Number)
		c.Params[1] = json.RawMessage(fmt.Sprintf("%q", hexOf(height-min(height, blocks))))
	}}
}

// noBalances says that nobody holds anything.
func noBalances(*liar) lie {
	return lie{answer: func(c rpcCall, result json.RawMessage) json.RawMessage {
		switch {
		case !asksBalance(c):
			return result
		case c.Method == "eth_getBalance":
			return json.RawMessage(`"0x0"`)
		}

		return json.RawMessage(fmt.Sprintf(`"0x%064x"`, 0))
	}}
}

// moreBalance says that everybody holds a coin more.
func moreBalance(*liar) lie {
	return lie{answer: func(c rpcCall, result json.RawMessage) json.RawMessage {
		var text string
		if c.Method != "eth_getBalance" || json.Unmarshal(result, &text) != nil {
			return result
		}

		held, ok := new(big.Int).SetString(strings.TrimPrefix(text, "0x"), 16)
		if !ok {
			return result
		}

		return json.RawMessage(fmt.Sprintf(`"0x%x"`, held.Add(held, decimal(coin))))
	}}
}

// The preferred of two nodes shows other balances than there are. What arrived is neither dropped nor credited as less
// meanwhile, and is credited once both agree.
func TestPaymentsOutliveBalancesOfOneNode(t *testing.T) {
	scenarios := map[string]func(t *testing.T, s *stage){}
	for name, says := range map[string]func(*liar) lie{
		"old ones": func(l *liar) lie { return oldBalances(l, 3) },
		"none":     noBalances,
	} {
		scenarios[name] = func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("HONEST", dollars100)
			w.liars[0].instruct(says(w.liars[0]))
			w.transfer(1+honest, honest, inv, 100_000_000)
			w.blocks(2 * confirmations)

			if n := w.happened("payment.dropped"); n != 0 {
				t.Errorf("%d payments were dropped that a block holds", n)
			}

			if w.liars[0].lied() == 0 {
				t.Error("the preferred node was never asked")
			}

			w.liars[0].instruct(lie{})
			w.later(5 * time.Minute)
			w.blocks(2 * confirmations)
			w.want(inv, "paid", dollars100)

			all := w.paymentsTo(inv)
			if len(all) != 1 || all[0].TxHash == "" {
				t.Errorf("it is recorded as %+v", all)
			}
		}
	}

	play(t, scenarios)
}

// The preferred of two nodes says that addresses hold more than anybody sent.
func TestOneNodeInventsNoMoney(t *testing.T) {
	play(t, map[string]func(t *testing.T, s *stage){
		"for addresses that wait": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv, d := w.sell("ETH", coin), w.deposit()
			w.liars[0].instruct(moreBalance(w.liars[0]))

			for range 4 * confirmations {
				w.later(30 * time.Second)
			}

			w.want(inv, "open", "0")

			for _, p := range w.paymentsTo(d) {
				if p.Status == "confirmed" {
					t.Errorf("nobody sent %+v", p)
				}
			}

			if w.liars[0].lied() == 0 {
				t.Error("the preferred node was never asked")
			}
		},
		"of a token that keeps a fee": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("SILENT", dollars100)
			w.transfer(1+silent, silent, inv, 100_000_000)
			w.mine(1)

			// It holds nothing before its block, and all that the logs say after it.
			w.liars[0].instruct(lie{answer: func(c rpcCall, result json.RawMessage) json.RawMessage {
				if asksBalance(c) && string(result) == fmt.Sprintf(`"0x%064x"`, 99_000_000) {
					return json.RawMessage(fmt.Sprintf(`"0x%064x"`, 100_000_000))
				}

				return result
			}})
			w.pass(time.Second)
			w.blocks(2 * confirmations)

			if shown := w.get(inv); shown.Options[0].AmountPaid == dollars100 {
				t.Errorf("%s is paid where 99000000 arrived", shown.Options[0].AmountPaid)
			}

			w.liars[0].instruct(lie{})
			w.later(5 * time.Minute)
			w.blocks(2 * confirmations)
			w.want(inv, "underpaid", "99000000")
		},
	})
}
