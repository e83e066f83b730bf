//go:build unix

package canonical_test

// This file is a random run on Bitcoin's rules: payouts on the change of payouts, fees that move, bytes that were
// replaced and mined all the same, dust, rewards, forks, hours without a block, and processes killed at any moment.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/store/sqlite"
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

func newBitcoinRun(t *testing.T, seed uint64) *bitcoinRun {
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

	o := orders{
		DB:           filepath.Join(t.TempDir(), "payments.db"),
		RPCs:         []string{r.market.url(n)},
		BitcoinFeeTo: n.address(),
	}
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
	r.rest()
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
func (r *bitcoinRun) rest() {
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

// happen lets one thing happen, each as often as it is listed.
func (r *bitcoinRun) happen() {
	r.t.Helper()
	r.service.now = r.service.now.Add(time.Duration(2+r.rand.IntN(60)) * time.Second)

	switch k := r.rand.IntN(24); {
	case k < 7:
		r.payOut()
	case k < 9:
		r.deposit()
	case k < 10:
		r.dust()
	case k < 11:
		r.reward()
	case k < 14:
		r.market.rate.Store(int64(1_000 + r.rand.IntN(30_000)))
		r.say("a fee rate of %d", r.market.rate.Load())
	case k < 15:
		r.quiet()
	case k < 17:
		r.race()
	case k < 18:
		r.fork()
	case k < 19:
		r.cancel()
	case k < 20:
		r.displace()
	case k < 22:
		r.minePart()
	default:
		r.mine(1 + r.rand.IntN(2))
		r.say("blocks up to %d", r.height())
	}
}

func (r *bitcoinRun) payOut() {
	r.t.Helper()

	for range 1 + r.rand.IntN(3) {
		to := r.address()

		status, text, err := r.service.request("POST", "/v1/payouts", fmt.Sprintf(
			`{"asset":"BTC","network":%q,"amount":"%d","destination":%q}`,
			bitcoinNetwork, 20_000+r.rand.IntN(9_000_000), to,
		))

		var made struct{ ID string }
		if err != nil || status == 200 && json.Unmarshal(text, &made) != nil {
			r.t.Fatalf("payout: %d %s, %v", status, text, err)
		}

		r.say("payout to %s: %d %s", to, status, made.ID)

		if made.ID != "" {
			r.did.Payouts++
			r.payouts = append(r.payouts, made.ID)
			r.to[made.ID] = to
		}
	}
}

// send has a payer pay.
func (r *bitcoinRun) send(to string, satoshi int64) (hash string) {
	r.t.Helper()

	hash = r.pay(to, satoshi)
	r.payer[hash] = true

	return hash
}

func (r *bitcoinRun) deposit() {
	r.t.Helper()

	r.did.Deposits++
	all := slices.Concat(r.honest, r.dusty)
	to := all[r.rand.IntN(len(all))].address
	r.say("deposit to %s: %s", to, r.send(to, int64(50_000+r.rand.IntN(5_000_000))))
}

func (r *bitcoinRun) dust() {
	r.t.Helper()

	to := r.dusty[r.rand.IntN(len(r.dusty))].address
	for range 1 + r.rand.IntN(8) {
		r.did.Dust++
		r.send(to, int64(330+r.rand.IntN(1_200)))
	}

	r.say("dust to %s", to)
}

func (r *bitcoinRun) reward() {
	r.t.Helper()

	to := r.master
	if r.rand.IntN(2) == 0 {
		to = r.dusty[r.rand.IntN(len(r.dusty))].address
	}

	r.did.Rewards++
	r.call(nil, "generatetoaddress", 1, to)
	r.say("a reward to %s", to)
}

// quiet lets an hour or two pass without a block.
func (r *bitcoinRun) quiet() {
	r.t.Helper()

	r.did.Quiet++
	r.say("hours without a block")

	for range 8 * (1 + r.rand.IntN(2)) {
		r.service.now = r.service.now.Add(8 * time.Minute)
		r.work(0)
	}
}

// race lets fees rise until what waits is replaced, has more paid on top, and mines what was replaced.
func (r *bitcoinRun) race() {
	r.t.Helper()

	r.payOut()
	r.work(0)
	r.market.rate.Store(r.market.rate.Load()*2 + 2_000)
	r.say("a fee rate of %d", r.market.rate.Load())

	for range 2 {
		r.service.now = r.service.now.Add(4 * time.Minute)
		r.work(0)
	}

	r.payOut()
	r.work(0)
	r.mineReplaced()
	r.market.rate.Store(int64(1_000 + r.rand.IntN(10_000)))
}

// mineReplaced mines bytes of ours that are in the pool no more, as a miner may who has them.
func (r *bitcoinRun) mineReplaced() {
	r.t.Helper()

	pool := r.pool()

	var gone []string

	for hash := range r.ours {
		if !slices.Contains(pool, hash) {
			gone = append(gone, hash)
		}
	}

	slices.Sort(gone)
	r.rand.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })

	for _, hash := range gone {
		if r.mineThese(r.ours[hash]) {
			r.did.Lost++
			r.say("mined %s, which was replaced", hash)

			return
		}
	}
}

// minePart mines one transaction of the pool that rests on none.
func (r *bitcoinRun) minePart() {
	r.t.Helper()

	for _, i := range r.rand.Perm(len(r.pool())) {
		if pool := r.pool(); i < len(pool) && r.mineThese(pool[i]) {
			r.say("mined %s alone", pool[i])
			return
		}
	}
}

// fork replaces one block or two; what they held goes back to the pool, or is lost.
func (r *bitcoinRun) fork() {
	r.t.Helper()

	depth := 1 + r.rand.IntN(2)
	r.did.Forks++

	r.call(nil, "invalidateblock", r.hashAt(r.height()-uint64(depth)+1))

	for range depth + 1 {
		if r.rand.IntN(2) == 0 || !r.mineThese() {
			r.mine(1)
		}
	}

	r.say("a fork of %d, up to %d", depth, r.height())
}

func (r *bitcoinRun) cancel() {
	r.t.Helper()

	if len(r.payouts) == 0 {
		return
	}

	id := r.payouts[r.rand.IntN(len(r.payouts))]
	status, _, err := r.service.request("POST", "/v1/payouts/"+id+"/cancel", "{}")
	r.say("cancel of %s: %d, %v", id, status, err)
}

// displace has a payer take a payment back that waits.
func (r *bitcoinRun) displace() {
	r.t.Helper()

	to := r.honest[r.rand.IntN(len(r.honest))].address
	hash := r.send(to, int64(100_000+r.rand.IntN(100_000)))
	r.work(0)

	var bumped struct{ Txid string }

	err := r.try(&bumped, "bumpfee", hash, map[string]any{
		"fee_rate": 80, "outputs": []map[string]string{{r.address(): "0.0001"}},
	})
	if err == nil {
		r.payer[bumped.Txid] = true
	}

	r.say("payment %s displaced by %s: %v", hash, bumped.Txid, err)
}

// compare holds what the API shows against what a walk of the chain finds.
func (r *bitcoinRun) compare() {
	r.t.Helper()

	ours := map[string]bool{r.master: true}
	for _, p := range slices.Concat(r.honest, r.dusty) {
		ours[p.address] = true
	}

	l := walkOutputs(r.bitcoinNode, ours)

	for hash := range r.ours {
		if _, mined := l.fees[hash]; !mined {
			r.did.Replaced++
		}
	}

	told := r.comparePayouts(l) + r.compareSettlements()
	for _, p := range r.honest {
		r.comparePlace(p, l)
	}

	for _, satoshi := range l.fees {
		told -= satoshi
	}

	if told != 0 {
		r.differ("payouts and settlements bear %d satoshi more than our transactions cost", told)
	}

	b := r.balance()
	if want := fmt.Sprint(l.spendable(r.master)); b.Balance != want || b.Available != want || b.Reserved != "0" {
		r.differ("the wallet holds %s, the API shows %+v", want, b)
	}

	var differences []any
	r.service.ask("GET", "/audit", "", &differences)

	for _, d := range differences {
		r.differ("the audit finds %v", d)
	}

	if r.did.Differences > 0 {
		r.t.Logf("what is not over:\n%s", strings.Join(r.records(), "\n"))
		r.t.Logf("what happened:\n%s", strings.Join(r.steps, "\n"))
		r.t.Logf("the last of what the service logged:\n%s", r.service.tail())
	}
}

// records returns the transactions of payouts that are not over, as the service stores them.
func (r *bitcoinRun) records() (lines []string) {
	r.t.Helper()

	db, err := sqlite.Open(r.service.DB)
	r.service.must(err)

	defer db.Close()

	for _, open := range r.unfinished() {
		id, _, _ := strings.Cut(open, " ")

		all, err := db.TransactionsOf(r.t.Context(), id)
		r.service.must(err)

		for _, t := range all {
			lines = append(lines, fmt.Sprintf("%s %s %s due %v", t.Kind, t.ID, t.State, t.DueAt))

			for _, a := range t.Attempts {
				lines = append(lines, fmt.Sprintf(
					"  %s at %v, sent %v %q, spends %v on %v", a.Signed.TxHash, a.SignedAt, a.LastSentAt,
					a.LastSendError, a.Signed.Inputs, a.Signed.UnconfirmedParents,
				))
			}
		}
	}

	return lines
}

func (r *bitcoinRun) differ(format string, args ...any) {
	r.t.Helper()

	r.did.Differences++
	r.t.Errorf(format, args...)
}

// comparePayouts checks that each is over, and arrived once or not at all. It returns the fees they tell, in
// satoshi.
func (r *bitcoinRun) comparePayouts(l *outputLedger) (fees int64) {
	r.t.Helper()

	for _, id := range r.payouts {
		p := r.payout(id)
		want := decimal(p.Amount).Int64()

		switch p.Status {
		case "confirmed":
			r.did.Confirmed++
		case "failed":
			r.did.Failed++
			want = 0
		default:
			r.differ("payout %s came to no end: %s", id, p.Status)
		}

		for _, fee := range []string{p.NetworkFee, p.Conflict.NetworkFee} {
			if fee != "" {
				fees += decimal(fee).Int64()
			}
		}

		if got := l.received(r.to[id]); got != want || len(l.arrived[r.to[id]]) > 1 {
			r.differ("payout %s of %s is %s (%s), %d arrived", id, p.Amount, p.Status, p.FailureCode, got)
		}
	}

	return fees
}

// compareSettlements checks that none is under way, and returns the network fees that they tell, in satoshi.
func (r *bitcoinRun) compareSettlements() (fees int64) {
	r.t.Helper()

	for after := ""; ; {
		var page struct {
			Data []struct {
				ID, Status  string
				NetworkFees string `json:"network_fees"`
			}
			HasMore bool `json:"has_more"`
		}
		r.service.ask("GET", "/v1/settlements?limit=100"+after, "", &page)

		for _, s := range page.Data {
			if s.Status == "releasing" {
				r.differ("settlement %s came to no end", s.ID)
			}

			fees += decimal(s.NetworkFees).Int64()
			after = "&starting_after=" + s.ID
		}

		if !page.HasMore {
			return fees
		}
	}
}

// comparePlace compares the payments of a deposit address with the walk.
func (r *bitcoinRun) comparePlace(p place, l *outputLedger) {
	r.t.Helper()

	var page struct{ Data []paymentView }
	r.service.ask("GET", p.path+"?limit=100", "", &page)

	shown := map[string]int64{}

	for _, pay := range page.Data {
		switch pay.Status {
		case "confirmed":
			shown[pay.TxHash] += decimal(pay.Amount).Int64()
		case "orphaned", "dropped":
		default:
			r.differ("%s: payment %+v came to no end", p.address, pay)
		}
	}

	if want, got := fmt.Sprint(l.arrived[p.address]), fmt.Sprint(shown); len(l.arrived[p.address])+len(shown) > 0 &&
		want != got {
		r.differ("%s: the chain has\n%s\nthe API shows\n%s", p.address, want, got)
	}
}
