package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// tronBlockTime is the time between two blocks that until makes. Balances are read at the newest solidified
// block, so there is none where blocks come faster than it is read; Tron's come every 3 seconds.
const tronBlockTime = 200 * time.Millisecond

// tronStage is a service on a fake Tron node that makes blocks while somebody waits, with an
// outsider who pays.
type tronStage struct {
	*service
	node   *testenv.TronNode
	driver chain.Driver
	token  abi.ABI
	usdt   string
	slug   string
	master chain.Party
	feeTo  chain.Address
}

// tronAddress is a Tron address of 20 bytes in hex.
func tronAddress(digits string) chain.Address {
	return chain.Address(base58.CheckEncode(common.HexToAddress(digits).Bytes(), 0x41))
}

func startTron(t *testing.T, change ...func(*tron.Config)) *tronStage {
	t.Helper()

	outsider := testenv.WellKnownDevAccounts[0]
	s := &tronStage{feeTo: tronAddress(feeAddress)}

	var err error
	if s.token, err = abi.JSON(strings.NewReader(contracts.FalseOnSuccess.ABI)); err != nil {
		t.Fatal(err)
	}

	mint, err := s.token.Pack(
		"mint", common.HexToAddress(outsider.Address),
		new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil),
	)
	if err != nil {
		t.Fatal(err)
	}

	s.node = testenv.Tron(t, testenv.TronOptions{
		SolidLag: 4,
		Balances: map[string]int64{string(tronAddress(outsider.Address)): 1_000_000_000_000_000},
		Contracts: []testenv.TronContract{
			{Bytecode: contracts.FalseOnSuccess.Bytecode, Calls: []string{hex.EncodeToString(mint)}},
		},
	})
	s.usdt = s.node.Contracts[0]
	network := tron.Private(
		s.node.Genesis,
		chain.Asset{
			Symbol:    "USDT",
			Kind:      chain.Token,
			Contract:  chain.Address(s.usdt),
			Decimals:  6,
			MinAmount: chain.Units(100_000),
		},
	)
	network.BlockTime = tronBlockTime

	s.slug = network.Slug

	// Above the dearest energy of the scenarios.
	config := tron.Config{Network: network, Nodes: []tron.Node{{URL: s.node.URL}}, MaxEnergyPrice: 10_000}
	for _, f := range change {
		f(&config)
	}

	if s.driver, err = tron.New(config); err != nil {
		t.Fatal(err)
	}

	s.service = start(t, s.driver, string(s.feeTo))
	if s.master, err = internal.Of(
		s.engine,
	).Transactions.MasterWallet(
		t.Context(), s.slug, s.account.Index,
	); err != nil {
		t.Fatal(err)
	}

	return s
}

// on returns the stage for a subtest.
func (s *tronStage) on(t *testing.T) *tronStage {
	c := *s
	c.service = s.in(t)

	return &c
}

func (s *tronStage) control(name string, args map[string]any) testenv.TronState {
	s.t.Helper()

	state, err := s.node.Control(s.t.Context(), name, args)
	if err != nil {
		s.t.Fatal(err)
	}

	return state
}

func (s *tronStage) mine(n int) { s.t.Helper(); s.control("mine", map[string]any{"blocks": n}) }

// until makes blocks, one in tronBlockTime, until a condition holds.
func (s *tronStage) until(what string, ok func() (bool, string)) {
	s.t.Helper()

	var mined time.Time

	eventually(s.t, what, func() (bool, string) {
		done, state := ok()
		if !done && time.Since(mined) >= tronBlockTime {
			s.mine(1)

			mined = time.Now()
		}

		return done, state
	})
}

// pay sends coin or tokens from outside; it waits in the pool.
func (s *tronStage) pay(to chain.Address, asset string, v chain.Amount) testenv.TronState {
	s.t.Helper()

	p := testenv.TronPayment{PrivateKey: testenv.WellKnownDevAccounts[0].Key, To: string(to)}
	if asset == "USDT" {
		data, err := s.token.Pack("transfer", s.evm(to), v.Big())
		if err != nil {
			s.t.Fatal(err)
		}

		p.To, p.Data, p.FeeLimit = s.usdt, data, 1_000_000_000
	} else {
		sun, _ := v.Uint64()
		p.Amount = int64(sun)
	}

	state, err := s.node.Send(s.t.Context(), p)
	if err != nil {
		s.t.Fatal(err)
	}

	return state
}

func (s *tronStage) evm(a chain.Address) common.Address {
	return common.HexToAddress(testenv.TronHex(string(a))[2:])
}

func (s *tronStage) coins(of chain.Address) chain.Amount {
	s.t.Helper()

	sun, err := s.node.Balance(s.t.Context(), string(of))
	if err != nil {
		s.t.Fatal(err)
	}

	return chain.Units(uint64(sun))
}

func (s *tronStage) tokens(of chain.Address) chain.Amount {
	s.t.Helper()

	data, err := s.token.Pack("balanceOf", s.evm(of))
	if err != nil {
		s.t.Fatal(err)
	}

	word, err := s.node.View(s.t.Context(), s.usdt, data)
	if err != nil {
		s.t.Fatal(err)
	}

	v, err := chain.AmountFromBytes(word)
	if err != nil {
		s.t.Fatal(err)
	}

	return v
}

// settled makes blocks until all n payments of an invoice have a settlement of a status.
func (s *tronStage) settled(id string, n int, status string) []paymentView {
	s.t.Helper()

	var got []paymentView

	s.until(fmt.Sprintf("%d payments of invoice %s %s", n, id, status), func() (bool, string) {
		got = s.payments(id)

		b, _ := json.Marshal(got)
		for _, p := range got {
			if p.Settlement == nil || p.Settlement.Status != status {
				return false, string(b)
			}
		}

		return len(got) == n, string(b)
	})

	return got
}

func (s *tronStage) invoice(id string) (v invoiceView) {
	s.t.Helper()
	s.call("GET", "/v1/invoices/"+id, nil, &v)

	return v
}

func (s *tronStage) paid(id string, flags ...string) {
	s.t.Helper()
	s.until("invoice "+id+" is paid", func() (bool, string) {
		v := s.invoice(id)
		return v.Status == "paid" && slices.Equal(v.Flags, flags), fmt.Sprintf("%+v", v)
	})
}

// TestTron plays the main job on the fake node and compares what the API says with what the node
// holds, to the sun.
func TestTron(t *testing.T) {
	t.Parallel()

	s := startTron(t)
	// Token deposits have their fee and what they burn paid by the master wallet.
	s.pay(s.master.Address, "TRX", chain.Units(10_000_000_000))
	s.mine(6)

	t.Run("TRX, paid in two parts", func(t *testing.T) {
		s := s.on(t)
		inv := s.order("100", "TRX", s.slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
		feesBefore, masterBefore := s.coins(s.feeTo), s.coins(s.master.Address)
		half := due.Share(chain.Units(1), chain.Units(2))
		s.pay(to, "TRX", half)
		s.until(
			"underpaid",
			func() (bool, string) { v := s.invoice(inv.ID); return v.Status == "underpaid", v.Status },
		)
		s.pay(to, "TRX", due.Sub(half))
		s.paid(inv.ID)

		var gross, net, fee, network chain.Amount
		for _, pay := range s.settled(inv.ID, 2, "released") {
			gross, net = gross.Add(
				amount(t, pay.Settlement.Gross),
			), net.Add(
				amount(t, pay.Settlement.NetReleased),
			)
			fee, network = fee.Add(
				amount(t, pay.Settlement.FeePaid),
			), network.Add(
				amount(t, pay.Settlement.NetworkFees),
			)
		}
		// A sweep that the day's bandwidth pays for leaves one sun.
		left := s.coins(to)
		if gross != due || gross != net.Add(fee).Add(network).Add(left) || chain.Units(2).Less(left) {
			t.Errorf(
				"due %s, gross %s = net %s + fee %s + network fees %s + %s left at the address does not balance",
				due,
				gross,
				net,
				fee,
				network,
				left,
			)
		}

		if got := s.coins(s.master.Address).Sub(masterBefore); got != net {
			t.Errorf("the master wallet got %s, the API says %s", got, net)
		}

		if got := s.coins(s.feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
			t.Errorf("the fee address got %s, the API says %s", got, fee)
		}
	})

	t.Run("USDT, overpaid, to an address that was never active", func(t *testing.T) {
		s := s.on(t)
		inv := s.order("40", "USDT", s.slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
		paid := due.Add(chain.Units(5_000_000))
		feesBefore, masterBefore, tokensBefore := s.coins(
			s.feeTo,
		), s.coins(
			s.master.Address,
		), s.tokens(
			s.master.Address,
		)
		s.pay(to, "USDT", paid)
		s.paid(inv.ID, "overpaid")

		set := s.settled(inv.ID, 1, "released")[0].Settlement
		if amount(t, set.Gross) != paid || amount(t, set.NetReleased) != paid || set.TopUpTx == "" {
			t.Errorf(
				"paid %s, gross %s, net released %s, top-up %q",
				paid, set.Gross, set.NetReleased, set.TopUpTx,
			)
		}

		if got := s.tokens(s.master.Address).Sub(tokensBefore); got != paid {
			t.Errorf("the master wallet got %s tokens, %s were paid", got, paid)
		}

		if left := s.tokens(to); !left.IsZero() {
			t.Errorf("%s tokens are left at the deposit address", left)
		}

		fee := amount(t, set.FeePaid)
		if got := s.coins(s.feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
			t.Errorf("the fee address got %s, the API says %s", got, fee)
		}
		// Whatever left the master wallet is the fee, the network's fees, or coin that is left at
		// the address.
		spent := masterBefore.Sub(s.coins(s.master.Address))
		if want := fee.Add(amount(t, set.NetworkFees)).Add(s.coins(to)); spent != want {
			t.Errorf(
				"the master wallet spent %s; fee + network fees + what is left at the address is %s: %+v",
				spent, want, set,
			)
		}
	})

	t.Run("two equal payouts at once, and a refund", func(t *testing.T) { payoutsOnTron(t, s.on(t)) })
	t.Run("fork", func(t *testing.T) { forkOnTron(t, s.on(t)) })
	t.Run("hint", func(t *testing.T) { hintOnTron(t, s.on(t)) })
	t.Run(
		"a sweep that burns more than half of its worth",
		func(t *testing.T) { uneconomicOnTron(t, s.on(t)) },
	)
}

// send creates a payout or refund with the key that may pay the destinations given.
func (s *tronStage) send(key, path, idempotency string, body map[string]any) string {
	s.t.Helper()

	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}

	var got struct {
		ID string `json:"id"`
	}

	eventually(s.t, "POST "+path, func() (bool, string) { // the balance is read in turns
		req, err := http.NewRequestWithContext(
			s.t.Context(), http.MethodPost, s.base+path, strings.NewReader(string(text)),
		)
		if err != nil {
			s.t.Fatal(err)
		}

		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", idempotency)

		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()

		b, err := io.ReadAll(resp.Body)
		if err != nil {
			s.t.Fatal(err)
		}

		if resp.StatusCode == http.StatusOK {
			return json.Unmarshal(b, &got) == nil && got.ID != "", string(b)
		}

		if !strings.Contains(string(b), "insufficient_balance") {
			s.t.Fatalf("%s: %d %s", path, resp.StatusCode, b)
		}

		s.mine(1)

		return false, string(b)
	})

	return got.ID
}

type tronPayout struct {
	Status        string `json:"status"`
	TxHash        string `json:"tx_hash"`
	NetworkFee    string `json:"network_fee"`
	MaxNetworkFee string `json:"max_network_fee"`
	FailureCode   string `json:"failure_code"`
}

func payoutsOnTron(t *testing.T, s *tronStage) {
	to := tronAddress("0x00000000000000000000000000000000000bEEF1")

	_, key, err := s.engine.Accounts.CreateKey(
		t.Context(),
		account.KeyParams{
			AccountID:    s.account.ID,
			Scopes:       account.AllScopes(),
			Destinations: []chain.Destination{{Address: to}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	before, coinsBefore := s.tokens(to), s.coins(s.master.Address)
	body := map[string]any{"asset": "USDT", "network": s.slug, "amount": "3000000", "destination": string(to)}
	ids := []string{s.send(key, "/v1/payouts", "first", body), s.send(key, "/v1/payouts", "second", body)}

	var (
		hashes []string
		fees   chain.Amount
	)

	for _, id := range ids {
		var p tronPayout

		s.until("payout "+id+" is confirmed", func() (bool, string) {
			s.call("GET", "/v1/payouts/"+id, nil, &p)

			if p.Status == "failed" {
				t.Fatalf("%+v", p)
			}

			return p.Status == "confirmed", fmt.Sprintf("%+v", p)
		})

		hashes, fees = append(hashes, p.TxHash), fees.Add(amount(t, p.NetworkFee))
		if amount(t, p.MaxNetworkFee).Less(amount(t, p.NetworkFee)) {
			t.Errorf("a payout cost %s and was allowed %s", p.NetworkFee, p.MaxNetworkFee)
		}
	}

	if hashes[0] == hashes[1] {
		t.Errorf("both payouts are transaction %s", hashes[0])
	}

	if got := s.tokens(to).Sub(before); got != chain.Units(6_000_000) {
		t.Errorf("%s arrived for two payouts of 3000000", got)
	}

	if got := coinsBefore.Sub(s.coins(s.master.Address)); got != fees {
		t.Errorf("the master wallet lost %s, the API says %s", got, fees)
	}

	inv := s.order("20", "USDT", s.slug)
	s.pay(inv.Options[0].Address, "USDT", amount(t, inv.Options[0].AmountDue))
	s.paid(inv.ID)
	s.settled(inv.ID, 1, "released")
	before = s.tokens(to)
	refund := s.send(
		key, "/v1/refunds", "refund",
		map[string]any{"invoice_id": inv.ID, "destination": string(to)},
	)

	var r struct {
		Status string `json:"status"`
	}

	s.until("the refund succeeds", func() (bool, string) {
		s.call("GET", "/v1/refunds/"+refund, nil, &r)
		return r.Status == "succeeded", r.Status
	})

	if got := s.tokens(to).Sub(before); got != amount(t, inv.Options[0].AmountDue) {
		t.Errorf("%s were refunded of %s", got, inv.Options[0].AmountDue)
	}
}

// A payment that a fork takes out of the chain is orphaned; put in again it is the same payment,
// and settled once.
func forkOnTron(t *testing.T, s *tronStage) {
	inv := s.order("50", "TRX", s.slug)
	sent := s.pay(inv.Options[0].Address, "TRX", amount(t, inv.Options[0].AmountDue))
	s.mine(1)

	var first paymentView

	eventually(t, "the payment is detected", func() (bool, string) {
		got := s.payments(inv.ID)
		if len(got) == 1 {
			first = got[0]
		}

		return len(got) == 1 && got[0].Status == "detected", fmt.Sprintf("%+v", got)
	})
	s.control("fork", map[string]any{"depth": 1})
	eventually(t, "the payment is orphaned", func() (bool, string) {
		got := s.payments(inv.ID)
		return len(got) == 1 && got[0].Status == "orphaned", fmt.Sprintf("%+v", got)
	})

	var answer struct {
		Result bool `json:"result"`
	}
	if err := s.node.Call(
		t.Context(), "/wallet/broadcasthex", map[string]string{"transaction": sent.Bytes}, &answer,
	); err != nil ||
		!answer.Result {
		t.Fatalf("sent again: %+v, %v", answer, err)
	}

	s.paid(inv.ID)

	back := s.settled(inv.ID, 1, "released")
	if back[0].ID != first.ID || back[0].TxHash != sent.TxID {
		t.Errorf("the payment came back as %+v, it was %+v", back[0], first)
	}
}

// A payer names the transaction while it waits: it is found before any block has it.
func hintOnTron(t *testing.T, s *tronStage) {
	inv := s.order("30", "TRX", s.slug)
	sent := s.pay(inv.Options[0].Address, "TRX", amount(t, inv.Options[0].AmountDue))

	req, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, s.base+"/checkout/"+inv.ID+"/hint",
		strings.NewReader(url.Values{"tx_hash": {sent.TxID}}.Encode()),
	)
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(b), "found") {
		t.Fatalf("the hint: %d %s, %v", resp.StatusCode, b, err)
	}

	var page struct {
		Data []struct {
			DetectedBy string `json:"detected_by"`
			TxHash     string `json:"tx_hash"`
		} `json:"data"`
	}
	s.call("GET", "/v1/invoices/"+inv.ID+"/payments", nil, &page)

	if len(page.Data) != 1 || page.Data[0].DetectedBy != "hint" || page.Data[0].TxHash != sent.TxID {
		t.Errorf("after the hint the payments are %+v", page.Data)
	}

	s.paid(inv.ID)
	s.settled(inv.ID, 1, "released")
}

// Sweeping 9 USDT would burn more than 40 TRX, which are worth more than the deposit: the release
// is held, and nothing is burnt.
func uneconomicOnTron(t *testing.T, s *tronStage) {
	s.control("parameter", map[string]any{"key": "getEnergyFee", "value": 2_500})
	inv := s.order("9", "USDT", s.slug)
	due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
	before := s.coins(s.master.Address)
	s.pay(to, "USDT", due)
	s.paid(inv.ID)

	set := s.settled(inv.ID, 1, "held")[0].Settlement
	if set.Reason != "uneconomic" {
		t.Errorf("the settlement is held because of %q", set.Reason)
	}

	usdt, _ := s.driver.Network().Asset("USDT")

	steps, err := s.driver.(chain.Sweeper).PlanSweep(t.Context(), chain.SweepRequest{
		Asset:      usdt,
		Deposit:    chain.Party{Address: to},
		Master:     s.master,
		FeeAddress: s.feeTo,
		Amount:     due,
	})
	if err != nil {
		t.Fatal(err)
	}

	var cost chain.Amount
	for _, step := range steps {
		cost = cost.Add(step.NetworkFee)
	}

	if cost.Less(chain.Units(40_000_000)) {
		t.Errorf("the plan costs %s sun: this scenario wants 40 TRX or more", cost)
	}

	s.mine(5)

	if got := s.coins(s.master.Address); got != before || s.tokens(to) != due {
		t.Errorf(
			"the master wallet had %s and has %s, the deposit address has %s tokens of %s",
			before, got, s.tokens(to), due,
		)
	}
}
