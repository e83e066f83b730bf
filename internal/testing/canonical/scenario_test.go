//go:build unix

package canonical_test

// This file holds what the tests of single faults share: a service on a stage, and what they ask of it.

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
)

const (
	honest, noReturn, gross, silent = 0, 1, 2, 3 // indexes of the stage's tokens
	// beggar is the index of a payer who holds no token.
	beggar = holders
	coin   = "1000000000000000000"
)

// scenario is a service on a stage, with a wallet of its own that holds coin.
type scenario struct {
	*stage
	service *service
	liars   [2]*liar
	master  string
	first   uint64 // height at which it began
}

// money is what an invoice or a deposit address shows.
type money struct {
	ID, Status, Address string
	Options             []struct {
		Address        string
		AmountPaid     string `json:"amount_paid"`
		AmountDetected string `json:"amount_detected"`
	}
}

func (s *stage) begin(t *testing.T, o orders, settings account.Settings) *scenario {
	t.Helper()

	own := *s
	own.t, o.Passphrase = t, t.Name()
	w := &scenario{stage: &own}
	w.service, w.liars = own.serve(t, o, settings)

	var tip struct{ Timestamp string }
	w.call(&tip, "eth_getBlockByNumber", "latest", false)

	if at := time.Unix(number(t, tip.Timestamp).Int64(), 0); at.After(w.service.now) {
		w.service.now = at
	}

	w.service.work(0)

	var balances struct{ Data []struct{ Address string } }
	w.service.ask("GET", "/v1/balances", "", &balances)

	w.master = strings.ToLower(balances.Data[0].Address)
	w.call(nil, "anvil_setBalance", w.master, hexOf(9e18))
	w.blocks(1)
	w.first = w.tip()

	return w
}

// setLie makes both endpoints lie: to the service the network has no other node.
func (w *scenario) instruct(l lie) {
	for _, endpoint := range w.liars {
		endpoint.instruct(l)
	}
}

// pass lets time go by, and has the service work.
func (w *scenario) pass(d time.Duration) {
	w.t.Helper()

	w.service.now = w.service.now.Add(d)
	w.service.work(0)
}

// later lets a long time go by, for the chain too.
func (w *scenario) later(d time.Duration) {
	w.t.Helper()
	w.call(nil, "evm_increaseTime", int(d/time.Second))
	w.mine(1)
	w.pass(d)
}

// blocks makes blocks, and has the service read each.
func (w *scenario) blocks(n int) {
	w.t.Helper()

	for range n {
		w.mine(1)
		w.pass(time.Second)
	}
}

// within makes a block every few seconds until a condition holds, for a time at most.
func (w *scenario) within(most time.Duration, what string, holds func() bool) {
	w.t.Helper()

	const pace = 5 * time.Second

	for began := w.service.now; !holds(); {
		if w.service.now.Sub(began) >= most {
			w.t.Fatalf("not within %s: %s\n%s", most, what, w.service.tail())
		}

		w.mine(1)
		w.pass(pace)
	}
}

func (w *scenario) sell(symbol, due string) money {
	w.t.Helper()

	var made money
	w.service.ask("POST", "/v1/invoices", fmt.Sprintf(
		`{"options":[{"asset":%q,"network":%q,"amount":%q}],"expires_in":3600}`, symbol, network, due,
	), &made)

	made.Address = strings.ToLower(made.Options[0].Address)

	return made
}

func (w *scenario) deposit() money {
	w.t.Helper()

	var made money
	w.service.ask("POST", "/v1/deposit_addresses", `{"network":"local"}`, &made)

	return made
}

func (w *scenario) get(inv money) money {
	w.t.Helper()

	var shown money
	w.service.ask("GET", "/v1/invoices/"+inv.ID, "", &shown)

	return shown
}

// want checks an invoice's status and what counts as paid.
func (w *scenario) want(inv money, status, paid string) {
	w.t.Helper()

	shown := w.get(inv)
	if shown.Status != status || shown.Options[0].AmountPaid != paid {
		w.t.Errorf(
			"the invoice is %s with %s paid and %s detected, want %s with %s\n%s", shown.Status,
			shown.Options[0].AmountPaid, shown.Options[0].AmountDetected, status, paid, w.service.tail(),
		)
	}
}

// held returns what the node says an invoice's address holds of a token.
func (w *scenario) heldBy(inv money, token int) string {
	w.t.Helper()
	return w.node.balance(string(w.tokens[token].Contract), inv.Address, w.tip()).String()
}

func (w *scenario) paymentsTo(inv money) []paymentView {
	w.t.Helper()

	path := "/v1/deposit_addresses/"
	if len(inv.Options) > 0 {
		path = "/v1/invoices/"
	}

	var page struct{ Data []paymentView }
	w.service.ask("GET", path+inv.ID+"/payments", "", &page)

	return page.Data
}

// put has a payer send a transaction into the pool.
func (w *scenario) put(payer int, tx map[string]any) (hash string) {
	w.t.Helper()

	tx["from"] = w.payers[payer]
	if tx["gas"] == nil {
		tx["gas"] = gas
	}

	hash, err := w.send(tx)
	if err != nil {
		w.t.Fatal(err)
	}

	return hash
}

// transfer has a payer send tokens.
func (w *scenario) transfer(payer, token int, to money, amount int64) (hash string) {
	w.t.Helper()

	return w.put(payer, map[string]any{
		"to":   w.tokens[token].Contract,
		"data": data("transfer(address,uint256)", to.Address, big.NewInt(amount)),
	})
}

// sendCoin has a payer send wei, by a contract or not.
func (w *scenario) sendCoin(to money, byContract bool, wei string) (hash string) {
	w.t.Helper()

	value := "0x" + decimal(wei).Text(16)
	if byContract {
		return w.put(1, map[string]any{
			"to":    w.forwarder,
			"value": value,
			"data":  data("forward(address)", to.Address),
		})
	}

	return w.put(1, map[string]any{"to": to.Address, "value": value})
}

// destroyInto has a payer create a contract that destroys itself in its constructor, in favour of an address.
func (w *scenario) destroyInto(to money, wei string) (hash string) {
	w.t.Helper()

	const push20, selfdestruct = "73", "ff"

	return w.put(1, map[string]any{
		"value": "0x" + decimal(wei).Text(16),
		"data":  "0x" + push20 + strings.TrimPrefix(to.Address, "0x") + selfdestruct,
	})
}

// setFee changes what a token takes, with a block of its own, until the test ends.
func (w *scenario) setFee(token, basisPoints int) {
	w.t.Helper()

	set := func(points int) {
		w.put(1, map[string]any{"to": w.tokens[token].Contract, "data": data("setFee(uint256)", points)})
		w.mine(1)
	}

	set(basisPoints)
	w.t.Cleanup(func() { set(0) })
}

// branches are what the paying contract does where a block's miner is so.
const (
	paysAll, paysAnother, paysASeventh = 0, 2, 3
)

// onBranch names the miner of the blocks to come.
func (w *scenario) onBranch(state int) {
	w.t.Helper()
	w.call(nil, "anvil_setCoinbase", fmt.Sprintf("0x%040x", 100_000+state))
}

// payByBranch has the contract pay 100 dollars, to whom and how much the branch says.
func (w *scenario) payByBranch(to, other money) (hash, raw string) {
	w.t.Helper()

	hash = w.put(1, map[string]any{
		"to": w.variable,
		"data": data(
			"pay(address,address,address,uint256)",
			string(w.tokens[honest].Contract), to.Address, other.Address, big.NewInt(100_000_000),
		),
	})
	w.call(&raw, "eth_getRawTransactionByHash", hash)

	return hash, raw
}

// fork replaces blocks; the first of the new ones holds a transaction again.
func (w *scenario) fork(depth, state int, raw string) {
	w.t.Helper()
	w.onBranch(state)
	w.call(nil, "anvil_reorg", depth, []any{[]any{raw, 0}})
}

func (w *scenario) hint(inv money, hash string) {
	w.t.Helper()

	status, text, err := w.service.request("POST", "/hint?invoice="+inv.ID+"&tx="+hash, "")
	if err != nil || status != 200 || !strings.Contains(string(text), "found") {
		w.t.Fatalf("hint: %d %s, %v\n%s", status, text, err, w.service.tail())
	}
}

// storedEvent is an event as the API lists it.
type storedEvent struct {
	Type string
	Data struct{ Object map[string]any }
}

func (w *scenario) events() []storedEvent {
	w.t.Helper()

	var page struct{ Data []storedEvent }
	w.service.ask("GET", "/v1/events?limit=100", "", &page)

	return page.Data
}

// happened counts the events of a type.
func (w *scenario) happened(kind string) (n int) {
	w.t.Helper()

	for _, e := range w.events() {
		if e.Type == kind {
			n++
		}
	}

	return n
}

// audit returns what the audit finds.
func (w *scenario) audit() (differences []any) {
	w.t.Helper()
	w.service.ask("GET", "/audit", "", &differences)

	return differences
}
