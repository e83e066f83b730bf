//go:build unix

package moneyout_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// tronLiar is a Tron node that shows receipts and accounts forged, while it has a forgery.
type tronLiar struct {
	url string // of the node behind it

	mu       sync.Mutex
	forge    func(receipt map[string]any) bool // reports whether it changed the receipt
	forged   int                               // receipts and accounts
	accounts map[string]int64                  // forged balances in sun, by address in hex
	down     bool                              // it answers nothing
	path     string                            // of the requests whose answers it changes
	change   func(answer map[string]any)
}

// lieAbout has the node change its answers to one request; nil has it be honest.
func (l *tronLiar) lieAbout(path string, change func(answer map[string]any)) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.path, l.change = path, change
}

// hold has the node say that an address holds so many sun.
func (l *tronLiar) hold(address string, sun int64) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.accounts = map[string]int64{testenv.TronHex(address): sun}
}

// setDown has the node answer nothing, or again.
func (l *tronLiar) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.down = down
}

// lie has the node forge receipts; nil has it be honest.
func (l *tronLiar) lie(forge func(receipt map[string]any) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.forge, l.forged, l.accounts = forge, 0, nil
}

// lies returns how many receipts and accounts were forged.
func (l *tronLiar) lies() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.forged
}

// ServeHTTP forwards a request.
func (l *tronLiar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)

	resp, err := http.Post(l.url+r.URL.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()

	answer, _ := io.ReadAll(resp.Body)

	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case l.down:
		http.Error(w, "down", http.StatusBadGateway)
		return
	case l.forge != nil && strings.Contains(r.URL.Path, "gettransactioninfoby"):
		answer = l.forgeIn(answer)
	case strings.HasSuffix(r.URL.Path, "/getaccount"):
		answer = l.forgeAccount(body, answer)
	}

	if l.change != nil && r.URL.Path == l.path {
		var fields map[string]any

		if json.Unmarshal(answer, &fields) == nil {
			l.change(fields)
			answer, _ = json.Marshal(fields)
		}
	}

	_, _ = w.Write(answer)
}

// forgeAccount forges the balance of an account.
func (l *tronLiar) forgeAccount(request, answer []byte) []byte {
	var asked struct{ Address string }

	_ = json.Unmarshal(request, &asked)

	sun, forged := l.accounts[asked.Address]
	if !forged {
		return answer
	}

	l.forged++
	answer, _ = json.Marshal(map[string]any{"address": asked.Address, "balance": sun})

	return answer
}

// forgeIn forges one receipt, or those of a list.
func (l *tronLiar) forgeIn(answer []byte) []byte {
	var (
		one  map[string]any
		list []map[string]any
	)

	if json.Unmarshal(answer, &one) == nil {
		list = append(list, one)
	} else {
		_ = json.Unmarshal(answer, &list)
	}

	for _, receipt := range list {
		if l.forge(receipt) {
			l.forged++
		}
	}

	if one != nil {
		answer, _ = json.Marshal(one)
	} else {
		answer, _ = json.Marshal(list)
	}

	return answer
}

// tronPayer pays tokens and coin on a fake Tron node.
type tronPayer struct {
	*realHarness
	node    *testenv.TronNode
	honest  *tronLiar // which never lies
	token   abi.ABI
	address string
}

// behindTronLiar begins over two Tron nodes with USDT: a liar, and an honest one.
func behindTronLiar(t *testing.T) (*tronPayer, *tronLiar) {
	t.Helper()

	token, err := abi.JSON(strings.NewReader(contracts.FalseOnSuccess.ABI))
	noError(t, err)

	mint, err := token.Pack("mint", common.HexToAddress(tronFunder.Address), big.NewInt(1_000_000_000_000))
	noError(t, err)

	liar, honest := new(tronLiar), new(tronLiar)
	p := &tronPayer{honest: honest, token: token, address: tronAddress(common.FromHex(tronFunder.Address))}

	p.node = testenv.Tron(t, testenv.TronOptions{
		SolidLag: 4,
		Balances: map[string]int64{p.address: 1_000_000_000_000_000},
		Contracts: []testenv.TronContract{
			{Bytecode: contracts.FalseOnSuccess.Bytecode, Calls: []string{hex.EncodeToString(mint)}},
		},
	})

	var nodes []tron.Node

	for _, n := range []*tronLiar{liar, honest} {
		n.url = p.node.URL
		server := httptest.NewServer(n)
		t.Cleanup(server.Close)

		nodes = append(nodes, tron.Node{URL: server.URL})
	}

	node := tronNodeOver(p.node)
	node.driver = opened(func() (payments.ChainDriver, error) {
		return tron.New(tron.Config{
			Network: tronNetwork(p.node, chain.Asset{
				Symbol:    "USDT",
				Kind:      chain.Token,
				Contract:  chain.Address(p.node.Contracts[0]),
				Decimals:  6,
				MinAmount: chain.Units(100_000),
			}),
			Nodes: nodes,
		})
	})

	p.realHarness = &realHarness{realNode: node, t: t}
	p.reopen(sqliteAt(filepath.Join(t.TempDir(), "payments.db")))
	t.Cleanup(func() { p.must(p.store.Close()) })
	p.begin()

	return p, liar
}

// in has failures be those of a subtest, until it ends.
func (p *tronPayer) in(t *testing.T) {
	t.Helper()

	outer := p.t
	p.t = t

	t.Cleanup(func() { p.t = outer })
}

// sell makes an invoice over an amount of USDT.
func (p *tronPayer) sell(amount uint64) invoice.Invoice { return p.sellIn("USDT", amount) }

// sellIn makes an invoice over an amount of an asset.
func (p *tronPayer) sellIn(asset string, amount uint64) invoice.Invoice {
	p.t.Helper()

	inv, err := p.engine.Invoices.Create(p.t.Context(), invoice.CreateParams{
		Owner:   p.owner,
		Options: []invoice.OptionParams{{Asset: asset, Network: p.slug, Amount: chain.Units(amount)}},
	})
	p.must(err)

	return inv
}

// send pays USDT and returns the hash.
func (p *tronPayer) send(to chain.Address, amount chain.Amount) string {
	p.t.Helper()

	data, err := p.token.Pack("transfer", common.HexToAddress(testenv.TronHex(string(to))[2:]), amount.Big())
	p.must(err)

	sent, err := p.node.Send(p.t.Context(), testenv.TronPayment{
		PrivateKey: tronFunder.Key,
		To:         p.node.Contracts[0],
		Data:       data,
		FeeLimit:   1_000_000_000,
	})
	p.must(err)

	return sent.TxID
}

// paid returns an invoice and its payments. No more is paid than was sent.
func (p *tronPayer) paid(id string, sent chain.Amount) (invoice.Invoice, []invoice.Payment) {
	p.t.Helper()

	inv, err := p.engine.Invoices.Get(p.t.Context(), p.owner, id)
	p.must(err)

	if sent.Less(inv.Options[0].AmountPaid) {
		p.t.Fatalf("%s were sent, %s are paid", sent, inv.Options[0].AmountPaid)
	}

	all, err := p.store.Payments(
		p.t.Context(),
		invoice.PaymentFilter{Owner: p.owner, InvoiceID: id, Limit: 10},
	)
	p.must(err)

	return inv, all
}

// tronTopic is an address as the topic of a log.
func tronTopic(address string) string {
	return strings.Repeat("0", 24) + testenv.TronHex(address)[2:]
}

// onTransferTo returns a forgery of receipts with one log, a transfer of tokens to an address.
func onTransferTo(to chain.Address, change func(receipt, log map[string]any)) func(map[string]any) bool {
	return func(receipt map[string]any) bool {
		logs, _ := receipt["log"].([]any)
		if len(logs) != 1 {
			return false
		}

		log := logs[0].(map[string]any)

		topics, _ := log["topics"].([]any)
		if len(topics) != 3 || topics[2] != tronTopic(string(to)) {
			return false
		}

		change(receipt, log)

		return true
	}
}

// Where one of two nodes forges the receipt of a payment, the invoice is paid by what was sent, and not by what that
// node says. Once it says what the other one does, the payment has its hash and its payer.
func TestTronLiarChangesNoPayment(t *testing.T) {
	p, liar := behindTronLiar(t)
	thief := p.stranger(t)

	for name, change := range map[string]func(receipt, log map[string]any){
		"amount": func(_, log map[string]any) {
			more := chain.Units(900_000_000).Bytes32()
			log["data"] = hex.EncodeToString(more[:])
		},
		"sender":       func(_, log map[string]any) { log["topics"].([]any)[1] = tronTopic(thief) },
		"invented log": func(receipt, log map[string]any) { receipt["log"] = []any{log, log} },
		"left-out log": func(receipt, _ map[string]any) { delete(receipt, "log") },
	} {
		t.Run(name, func(t *testing.T) {
			const amount = 40_000_000

			p.in(t)

			inv := p.sell(amount)
			to, due := inv.Options[0].Address, inv.Options[0].AmountDue

			liar.lie(onTransferTo(to, change))
			hash := p.send(to, due)

			p.until("the invoice is paid", func() bool {
				got, _ := p.paid(inv.ID, due)
				return got.Status == invoice.Paid
			})

			if liar.lies() == 0 {
				t.Error("nothing was forged")
			}

			liar.lie(nil)

			var all []invoice.Payment

			p.until("the payment is the one that was sent", func() bool {
				_, all = p.paid(inv.ID, due)
				return len(all) == 1 && all[0].TxHash == hash && all[0].Status == invoice.Confirmed
			})

			if string(all[0].FromAddress) != p.address || all[0].Amount != due {
				t.Errorf("%s of %s were sent, the payment is %+v", due, p.address, all[0])
			}
		})
	}
}

// What one of two nodes adds to the fee of a payout is on no record.
func TestTronLiarChangesNoFee(t *testing.T) {
	p, liar := behindTronLiar(t)
	to := p.stranger(t)

	wallet, err := internal.Of(p.engine).Transactions.MasterWallet(t.Context(), p.slug, p.account.Index)
	p.must(err)

	master := string(wallet.Address)
	before := p.held(t, master)

	liar.lie(func(receipt map[string]any) bool {
		fee, charged := receipt["fee"].(float64)
		if charged {
			receipt["fee"] = int64(fee) + 1_000_000
		}

		return charged
	})

	made := p.pay(to)

	for range 30 { // blocks
		p.turn()
	}

	if held := p.held(t, to); held != made.Amount || liar.lies() == 0 {
		t.Fatalf("%s arrived, %d receipts were forged", held, liar.lies())
	}

	if got := p.get(made.ID); got.Status == payout.Confirmed || got.NetworkFee != nil {
		t.Errorf("while a node forges the fee the payout is %s with a fee of %s", got.Status, got.NetworkFee)
	}

	liar.lie(nil)

	got := p.confirmed(made.ID)
	if got.NetworkFee == nil || *got.NetworkFee != before.Sub(p.held(t, master)).Sub(made.Amount) {
		t.Errorf("the fee is %s sun, the wallet had %s and has %s", got.NetworkFee, before, p.held(t, master))
	}
}

// While the honest one of two nodes is down, a balance that the other one makes up confirms nothing. Once both answer
// it is compared again, and what was detected is dropped.
func TestTronLiarAloneConfirmsNoBalance(t *testing.T) {
	const alone = 70 // blocks, several times as many as a payment needs

	p, liar := behindTronLiar(t)
	inv := p.sellIn("TRX", 60_000_000)

	for range 3 {
		p.turn()
	}

	liar.hold(string(inv.Options[0].Address), 1_060_000_000)
	p.honest.setDown(true)

	for range alone {
		p.turn()
	}

	if liar.lies() == 0 {
		t.Error("nothing was forged")
	}

	if _, all := p.paid(inv.ID, chain.Amount{}); len(all) != 1 || all[0].Status != invoice.Detected {
		t.Errorf("while one node answers alone the payments are %+v", all)
	}

	liar.lie(nil)
	p.honest.setDown(false)

	p.until("what was made up is dropped", func() bool {
		_, all := p.paid(inv.ID, chain.Amount{})
		return len(all) == 1 && all[0].Status == invoice.Dropped
	})
}
