//go:build unix

package canonical_test

// This file is a random run on Bitcoin's rules: payouts on the change of payouts, fees that move, bytes that were
// replaced and mined all the same, dust, rewards, forks, hours without a block, and processes killed at any moment.

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
)

// bitcoinNetwork is the slug of bitcoind's regtest.
const bitcoinNetwork = "bitcoin-regtest"

// bitcoinTally counts what runs went through.
type bitcoinTally struct {
	Runs, Differences, Payouts, Confirmed, Failed, Deposits, Dust, Rewards, Forks, Kills, Chained, Replaced, Lost,
	Quiet int
}

func (a *bitcoinTally) add(b bitcoinTally) {
	a.Runs += b.Runs
	a.Differences += b.Differences
	a.Payouts += b.Payouts
	a.Confirmed += b.Confirmed
	a.Failed += b.Failed
	a.Deposits += b.Deposits
	a.Dust += b.Dust
	a.Rewards += b.Rewards
	a.Forks += b.Forks
	a.Kills += b.Kills
	a.Chained += b.Chained
	a.Replaced += b.Replaced
	a.Lost += b.Lost
	a.Quiet += b.Quiet
}

// bitcoinRun is a service on bitcoind, and what happened to it.
type bitcoinRun struct {
	bitcoinNode
	market  *market
	service *service
	rand    *rand.Rand
	master  string
	honest  []place // deposit addresses that get payments
	dusty   []place // that get dust, too
	// payouts are destinations by id, in order.
	payouts []string
	to      map[string]string
	// ours are transactions that were seen in the pool and that payers did not send: hex by hash.
	ours  map[string]string
	payer map[string]bool
	steps []string
	did   bitcoinTally
}

func newBitcoinRun(t *testing.T, o orders, seed uint64) *bitcoinRun {
	t.Helper()

	n := newBitcoinNode(t)
	r := &bitcoinRun{
		bitcoinNode: n,
		market:      newMarket(t, n),
		rand:        rand.New(rand.NewPCG(seed, 22)),
		to:          map[string]string{},
		ours:        map[string]string{},
		payer:       map[string]bool{},
		did:         bitcoinTally{Runs: 1},
	}

	if o.DB == "" {
		o.DB = filepath.Join(t.TempDir(), "payments.db")
	}

	o.RPCs, o.BitcoinFeeTo = []string{r.market.url(n)}, n.address()
	r.service = newService(t, o, bitcoinMerchant(t, o))
	r.open()

	return r
}

// bitcoinMerchant makes a merchant whose deposits are released, and a key.
func bitcoinMerchant(t *testing.T, o orders) (key string) {
	t.Helper()

	engine, db, err := o.engine(time.Now, t.Output())
	if err != nil {
		t.Fatal(err)
	}

	made, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{
		Name:           "Corner Shop",
		PayoutsPerHour: 100_000,
	})
	if err != nil {
		t.Fatal(err)
	}

	_, key, err = engine.Accounts.CreateKey(t.Context(), account.KeyParams{
		AccountID:  made.ID,
		AllowedIPs: []string{"127.0.0.1"},
		Scopes:     account.AllScopes(),
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	return key
}

// open makes the places that are paid, and funds the master wallet.
func (r *bitcoinRun) open() {
	r.t.Helper()
	r.service.work(0)

	for i := range 5 {
		var made struct{ ID, Address string }
		r.service.ask("POST", "/v1/deposit_addresses", `{"network":"`+bitcoinNetwork+`"}`, &made)

		p := place{path: "/v1/deposit_addresses/" + made.ID + "/payments", address: made.Address}
		if i < 3 {
			r.honest = append(r.honest, p)
		} else {
			r.dusty = append(r.dusty, p)
		}
	}

	r.master = r.balance().Address

	for range 2 {
		r.pay(r.master, 40_000_000)
	}

	r.mine(3)
	r.service.work(0)
}

// masterBalance is what the API shows of the master wallet.
type masterBalance struct{ Address, Balance, Reserved, Available string }

func (r *bitcoinRun) balance() masterBalance {
	r.t.Helper()

	var balances struct{ Data []masterBalance }
	r.service.ask("GET", "/v1/balances", "", &balances)

	if len(balances.Data) != 1 {
		r.t.Fatalf("there are %d balances", len(balances.Data))
	}

	return balances.Data[0]
}

// play has n things happen, and then lets everything come to rest.
func (r *bitcoinRun) play(n int) {
	r.t.Helper()

	for range n {
		r.happen()

		var kill time.Duration
		if r.rand.IntN(4) == 0 {
			kill = time.Duration(1+r.rand.IntN(120)) * time.Millisecond
		}

		r.work(kill)
	}

	r.market.rate.Store(2_000)
	r.finish()
	r.did.Kills = r.service.kills
}

// work has the service work, and looks at what it put into the pool.
func (r *bitcoinRun) work(kill time.Duration) {
	r.t.Helper()
	r.service.work(kill)
	r.look()
}

// look records what waits in the pool and was not sent by payers.
func (r *bitcoinRun) look() {
	r.t.Helper()

	pool := r.pool()
	for _, hash := range pool {
		if r.payer[hash] || r.ours[hash] != "" {
			continue
		}

		var tx struct {
			Hex string
			Vin []struct{ Txid string }
		}
		if r.try(&tx, "getrawtransaction", hash, 1) != nil {
			continue // a block took it
		}

		r.ours[hash] = tx.Hex

		for _, in := range tx.Vin {
			if slices.Contains(pool, in.Txid) {
				r.did.Chained++
				break
			}
		}
	}
}

// rest makes blocks until every payout is over, and lets a day go by.
func (r *bitcoinRun) finish() {
	r.t.Helper()

	for range 80 {
		r.mine(1)
		r.service.now = r.service.now.Add(10 * time.Minute)
		r.work(0)

		if len(r.unfinished()) == 0 && len(r.pool()) == 0 {
			break
		}
	}

	for range 10 {
		r.service.now = r.service.now.Add(3 * time.Hour)
		r.mine(1)
		r.work(0)
	}
}

// unfinished returns the payouts that are not over.
func (r *bitcoinRun) unfinished() (open []string) {
	r.t.Helper()

	for _, id := range r.payouts {
		if p := r.payout(id); p.Status != "confirmed" && p.Status != "failed" {
			open = append(open, id+" "+p.Status)
		}
	}

	return open
}

type payoutView struct {
	Status, Amount, Destination string
	TxHash                      string `json:"tx_hash"`
	FailureCode                 string `json:"failure_code"`
	NetworkFee                  string `json:"network_fee"`
	Conflict                    struct {
		NetworkFee string `json:"network_fee"`
	}
}

func (r *bitcoinRun) payout(id string) (p payoutView) {
	r.t.Helper()
	r.service.ask("GET", "/v1/payouts/"+id, "", &p)

	return p
}

func (r *bitcoinRun) say(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}
