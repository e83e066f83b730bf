//go:build unix

package canonical_test

// This file is a random run: a seed chooses what happens to the chain, the endpoints and the process.

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
)

const (
	// network is the slug of a development node.
	network = "local"
	// lost is how long a payment may be in neither pool nor chain, and a little more.
	lost = 25 * time.Hour
	// releaseBlocks are enough for releases that wait for each other.
	releaseBlocks = 400
)

// tally counts what runs went through.
type tally struct {
	Runs, Differences, Arrivals, Releases, Payouts, TokenPayouts, Forks, Deepest, Kills, Lies, Changed int
	// Reverted are payouts that failed so, Canceled those whose nonce a cancel of their wallet used.
	Reverted, Canceled int
}

func (a *tally) add(b tally) {
	a.Runs += b.Runs
	a.Differences += b.Differences
	a.Arrivals += b.Arrivals
	a.Releases += b.Releases
	a.Payouts += b.Payouts
	a.TokenPayouts += b.TokenPayouts
	a.Forks += b.Forks
	a.Deepest = max(a.Deepest, b.Deepest)
	a.Kills += b.Kills
	a.Lies += b.Lies
	a.Changed += b.Changed
	a.Reverted += b.Reverted
	a.Canceled += b.Canceled
}

// sent is a transaction of a payer, each of whom sends one.
type sent struct{ hash, raw string }

// place is an address that money is sent to.
type place struct {
	path    string // of its payments in the API
	invoice string // id; "" for a deposit address
	token   string // contract of the invoice's asset; "" for coin
	due     *big.Int
	address string
}

// asked is a payout that the service accepted: where it goes, and the contract of what it sends, "" for coin.
type asked struct{ to, token string }

// run is a service on a stage, and what happened to it.
type run struct {
	*stage
	service *service
	rand    *rand.Rand
	liars   [2]*liar
	first   uint64 // height at which it began
	master  string
	manual  bool // deposits stay where they are
	places  []place
	sent    []sent
	payouts map[string]asked // by id
	used    map[int]bool     // payers
	coined  map[string]bool  // addresses that a contract sent coin to
	steps   []string
	did     tally
}

// newRun begins a run on a stage of its own. Deposits of an odd seed are released.
func newRun(t *testing.T, s *stage, o orders, seed uint64) *run {
	t.Helper()

	r := &run{
		stage:   s,
		rand:    rand.New(rand.NewPCG(seed, 19)),
		payouts: map[string]asked{},
		used:    map[int]bool{0: true},
		coined:  map[string]bool{},
		did:     tally{Runs: 1},
	}

	r.manual = seed%2 == 0
	r.service, r.liars = s.serve(t, o, account.Settings{ManualRelease: r.manual})
	r.open()

	return r
}

// open makes what is paid, with blocks below that a fork of 40 can leave.
func (r *run) open() {
	r.t.Helper()
	r.service.work(0)

	for _, option := range []struct{ symbol, token, due string }{
		{"ETH", "", "1000000000000000000"},
		{"HONEST", string(r.tokens[0].Contract), "100000000"},
		{"NORETURN", string(r.tokens[1].Contract), "100000000"},
		{"GROSS", string(r.tokens[2].Contract), "100000000"},
	} {
		r.invoice(option.symbol, option.token, option.due)
	}

	for range 4 {
		var made struct{ ID, Address string }
		r.service.ask("POST", "/v1/deposit_addresses", `{"network":"local"}`, &made)
		r.places = append(r.places, place{
			path:    "/v1/deposit_addresses/" + made.ID + "/payments",
			address: strings.ToLower(made.Address),
		})
	}

	var balances struct{ Data []struct{ Address string } }
	r.service.ask("GET", "/v1/balances", "", &balances)

	if len(balances.Data) == 0 {
		r.t.Fatal("there is no wallet")
	}

	r.master = strings.ToLower(balances.Data[0].Address)
	r.call(nil, "anvil_setBalance", r.master, hexOf(9e18))

	for _, token := range r.tokens { // to pay out
		r.made(map[string]any{
			"to":   token.Contract,
			"data": data("mint(address,uint256)", r.master, big.NewInt(2_000_000_000)),
			"gas":  gas,
		})
	}

	r.mine(1)
	r.first = r.tip()

	for range 50 {
		r.mine(1)
	}

	r.service.work(0)
}

func (r *run) invoice(symbol, token, due string) {
	r.t.Helper()

	var made struct {
		ID      string
		Options []struct{ Address string }
	}

	r.service.ask("POST", "/v1/invoices", fmt.Sprintf(
		`{"options":[{"asset":%q,"network":%q,"amount":%q}],"expires_in":604800}`, symbol, network, due,
	), &made)

	amount, _ := new(big.Int).SetString(due, 10)
	r.places = append(r.places, place{
		path:    "/v1/invoices/" + made.ID + "/payments",
		invoice: made.ID,
		token:   strings.ToLower(token),
		due:     amount,
		address: strings.ToLower(made.Options[0].Address),
	})
}

// play has n things happen, and then lets everything come to rest.
func (r *run) play(n int) {
	r.t.Helper()

	for range n {
		r.happen()

		var kill time.Duration
		if r.rand.IntN(4) == 0 {
			kill = time.Duration(1+r.rand.IntN(150)) * time.Millisecond
		}

		r.service.work(kill)
	}

	for _, l := range r.liars {
		l.instruct(lie{})
	}

	for range 6 { // what waited for an honest second node is looked at again after minutes, and does not wait a day
		r.service.now = r.service.now.Add(2 * time.Minute)
		r.finish(2)
	}

	for range 3 { // what is in neither pool nor chain is given up after a day
		r.service.now = r.service.now.Add(lost)
		r.finish(5)
	}

	r.awaitReleases()

	// An address that nothing moves is compared hourly; what it holds too much confirms half a minute later.
	for range 3 {
		r.service.now = r.service.now.Add(time.Hour + time.Minute)

		for range 8 {
			r.service.now = r.service.now.Add(30 * time.Second)
			r.finish(1)
		}

		r.awaitReleases()
	}

	r.awaitPayouts()

	r.did.Kills = r.service.kills
	r.did.Changed = r.liars[0].lied() + r.liars[1].lied()
}

// awaitReleases makes blocks until no release is under way or waits.
func (r *run) awaitReleases() {
	r.t.Helper()

	for n := 0; !r.manual && n < releaseBlocks && r.releases(); n++ {
		r.service.now = r.service.now.Add(2 * time.Minute) // what waits is looked at again after minutes
		r.finish(1)
	}
}

// awaitPayouts makes blocks until no payout is under way. That another transaction used the nonce of one is proven
// where the network itself is final.
func (r *run) awaitPayouts() {
	r.t.Helper()

	for n := 0; n < 64+confirmations && r.paysOut(); n++ {
		r.service.now = r.service.now.Add(time.Minute)
		r.finish(1)
	}
}

// paysOut reports whether a payout is under way.
func (r *run) paysOut() bool {
	r.t.Helper()

	for id := range r.payouts {
		var p struct{ Status string }
		r.service.ask("GET", "/v1/payouts/"+id, "", &p)

		if p.Status != "confirmed" && p.Status != "failed" {
			return true
		}
	}

	return false
}

// releases reports whether a release is under way or waits.
func (r *run) releases() bool {
	r.t.Helper()

	for _, p := range r.places {
		for _, pay := range r.payments(p) {
			if set := pay.Settlement; set != nil && (set.Status == "pending" || set.Status == "releasing") {
				return true
			}
		}
	}

	return false
}

// finish makes blocks, one at a time, and has the service read each.
func (r *run) finish(blocks int) {
	r.t.Helper()

	for range blocks {
		r.mine(1)
		r.service.now = r.service.now.Add(2 * time.Second)
		r.service.work(0)
	}
}

func (r *run) say(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}

func (r *run) happen() {
	r.t.Helper()

	switch k := r.rand.IntN(20); {
	case k < 5:
		r.pay()
	case k < 7:
		r.payByContract()
	case k < 8:
		r.payAndRevert()
	case k < 9:
		r.setFee()
	case k < 10:
		r.drop()
	case k < 12:
		r.hint()
	case k < 14:
		r.fork()
	case k < 16:
		r.lie()
	case k < 18:
		r.payout()
	default:
		r.coinbase()
		r.mine(1 + r.rand.IntN(2))
		r.service.now = r.service.now.Add(time.Duration(2+r.rand.IntN(40)) * time.Second)
		r.say("blocks up to %d", r.tip())
	}
}

// payer returns a payer who has sent nothing yet, who holds the token of an index; -1: any.
func (r *run) payer(token int) (address string, ok bool) {
	from, step := holders, 1
	if token >= 0 {
		from, step = 1+token, len(r.tokens)
	}

	for i := from; i < accounts && (token < 0 || i < holders); i += step {
		if !r.used[i] {
			r.used[i] = true
			return r.payers[i], true
		}
	}

	return "", false
}

func (r *run) randomPlace() place { return r.places[r.rand.IntN(len(r.places))] }

// money returns an amount of dollars in a token's base units.
func (r *run) money() *big.Int { return big.NewInt(int64(10+r.rand.IntN(90)) * 1_000_000) }

// coins returns an amount of coin, in wei.
func (r *run) coins() *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(1+r.rand.IntN(80))), big.NewInt(1e16))
}

// put sends a transaction of a payer into the pool.
func (r *run) put(what string, tx map[string]any) {
	r.t.Helper()

	if tx["gas"] == nil {
		tx["gas"] = gas
	}

	hash, err := r.send(tx)
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}

	var raw string
	r.call(&raw, "eth_getRawTransactionByHash", hash)
	r.sent = append(r.sent, sent{hash, raw})
	r.say("%s: %s", what, hash)
}

func (r *run) pay() {
	r.t.Helper()

	to := r.randomPlace()

	if r.rand.IntN(4) == 0 {
		if from, ok := r.payer(-1); ok {
			r.put("coin to "+to.address, map[string]any{
				"from":  from,
				"to":    to.address,
				"value": "0x" + r.coins().Text(16),
				"gas":   "0x5208",
			})
		}

		return
	}

	kind := r.rand.IntN(len(r.tokens))
	if to.token != "" && r.rand.IntN(2) == 0 {
		kind = slices.IndexFunc(r.places, func(p place) bool { return p == to }) - 1
	}

	if from, ok := r.payer(kind); ok {
		token := r.tokens[kind]
		r.put(token.Symbol+" to "+to.address, map[string]any{
			"from": from,
			"to":   token.Contract,
			"data": data("transfer(address,uint256)", to.address, r.money()),
		})
	}
}

// payByContract pays coin or tokens by a contract; one looks at the branch it is on.
//
// An address gets coin by a contract once: of money that no transaction names, the API shows one payment until
// that is swept.
func (r *run) payByContract() {
	r.t.Helper()

	to, other := r.randomPlace(), r.randomPlace()
	coin := r.rand.IntN(2) == 0 && !r.coined[to.address] && !r.coined[other.address]

	from, ok := r.payer(-1)
	if !ok {
		return
	}

	kind := r.rand.IntN(len(r.tokens))

	token, value := string(r.tokens[kind].Contract), r.money()
	if coin {
		token, value = "0x0", new(big.Int).Div(r.coins(), big.NewInt(10))
		r.coined[to.address] = true
	}

	if coin && r.rand.IntN(2) == 0 {
		r.put("forwarded to "+to.address, map[string]any{
			"from":  from,
			"to":    r.forwarder,
			"value": "0x" + value.Text(16),
			"data":  data("forward(address)", to.address),
		})

		return
	}

	r.coined[other.address] = r.coined[other.address] || coin
	r.put("by contract to "+to.address+" or "+other.address+" of "+token, map[string]any{
		"from": from,
		"to":   r.variable,
		"data": data("pay(address,address,address,uint256)", token, to.address, other.address, value),
	})
}

// payAndRevert sends a transfer of tokens that the payer does not have.
func (r *run) payAndRevert() {
	r.t.Helper()

	if from, ok := r.payer(-1); ok {
		to := r.randomPlace()
		r.put("reverted to "+to.address, map[string]any{
			"from": from,
			"to":   r.tokens[r.rand.IntN(len(r.tokens))].Contract,
			"data": data("transfer(address,uint256)", to.address, r.money()),
		})
	}
}

// setFee changes what two of the tokens take, with the next block.
func (r *run) setFee() {
	r.t.Helper()

	if from, ok := r.payer(-1); ok {
		points := []int{0, 100, 9900, 10_000}[r.rand.IntN(4)]
		r.put(fmt.Sprintf("a fee of %d", points), map[string]any{
			"from": from,
			"to":   r.tokens[[]int{1, 4}[r.rand.IntN(2)]].Contract,
			"data": data("setFee(uint256)", points),
		})
	}
}

// drop takes a transaction out of the pool.
func (r *run) drop() {
	r.t.Helper()

	if len(r.sent) > 0 {
		tx := r.sent[r.rand.IntN(len(r.sent))]
		r.say("dropped %s", tx.hash)
		_ = r.try(nil, "anvil_dropTransaction", tx.hash) // it may be in a block
	}
}

// hint names a transaction as a customer would; an endpoint may not answer.
func (r *run) hint() {
	r.t.Helper()

	if len(r.sent) == 0 {
		return
	}

	tx, to := r.sent[r.rand.IntN(len(r.sent))], r.randomPlace()
	if to.invoice != "" {
		r.say("hint %s for %s", tx.hash, to.address)

		if _, _, err := r.service.request(
			"POST",
			"/hint?invoice="+to.invoice+"&tx="+tx.hash,
			"",
		); err != nil {
			r.t.Fatalf("hint: %v\n%s", err, r.service.tail())
		}
	}
}

// coinbase names another miner, whom the paying contract looks at.
func (r *run) coinbase() {
	r.t.Helper()
	r.call(nil, "anvil_setCoinbase", fmt.Sprintf("0x%040x", 0xc0ffee00+r.rand.IntN(1000)))
}

// fork replaces 1 to 40 blocks. Each of the payers' transactions in them is mined again, goes back to the
// pool, or is lost; the service's own are lost to the node.
func (r *run) fork() {
	r.t.Helper()

	depth := 1 + r.rand.IntN(4)
	if r.rand.IntN(3) == 0 {
		depth = 1 + r.rand.IntN(40)
	}

	r.did.Forks++
	r.did.Deepest = max(r.did.Deepest, depth)

	var (
		back  []string
		again = []any{}
	)

	for height := r.tip() - uint64(depth) + 1; height <= r.tip(); height++ {
		var block struct{ Transactions []string }
		r.call(&block, "eth_getBlockByNumber", hexOf(height), false)

		for _, tx := range r.sent {
			if !slices.Contains(block.Transactions, tx.hash) {
				continue
			}

			switch r.rand.IntN(3) {
			case 0:
				back = append(back, tx.raw)
			case 1:
				again = append(again, []any{tx.raw, r.rand.IntN(depth)})
			}
		}
	}

	r.coinbase()
	r.say("fork of %d at %d, %d mined again, %d back in the pool", depth, r.tip(), len(again), len(back))
	r.call(nil, "anvil_reorg", depth, again)

	var code string
	if r.call(&code, "eth_getCode", r.variable, "latest"); code == "0x" {
		r.t.Fatalf("the node lost its state in a fork of %d", depth)
	}

	for _, raw := range back {
		_ = r.try(nil, "eth_sendRawTransaction", raw)
	}

	r.service.now = r.service.now.Add(2 * time.Second)
}

// lie makes one endpoint wrong and the other right.
func (r *run) lie() {
	names := slices.Sorted(maps.Keys(lies))
	name, at := names[r.rand.IntN(len(names))], r.rand.IntN(2)
	r.did.Lies++
	r.say("endpoint %d lies: %s", at, name)
	r.liars[at].instruct(lies[name](r.liars[at]))
	r.liars[1-at].instruct(lie{})
}

// payout asks for coin or tokens to be sent to a new address.
func (r *run) payout() {
	r.t.Helper()

	to := fmt.Sprintf("0x%040x", r.rand.Uint64()|1)

	asset, token, amount := "ETH", "", r.coins()
	if r.rand.IntN(2) == 0 {
		kind := r.tokens[r.rand.IntN(len(r.tokens))]
		asset, token, amount = kind.Symbol, strings.ToLower(string(kind.Contract)), r.money()
	}

	status, text, err := r.service.request("POST", "/v1/payouts", fmt.Sprintf(
		`{"asset":%q,"network":%q,"amount":"%d","destination":%q}`, asset, network, amount, to,
	))

	var made struct{ ID string }
	if err != nil || status == 200 && json.Unmarshal(text, &made) != nil {
		r.t.Fatalf("payout: %d %s, %v", status, text, err)
	}

	r.say("payout of %s %s to %s: %d %s", amount, asset, to, status, text)

	if made.ID == "" {
		return
	}

	r.payouts[made.ID] = asked{to, token}

	if token == strings.ToLower(string(r.tokens[noReturn].Contract)) {
		r.revertPayouts()
	}
}

// revertPayouts has the token without an answer refuse what the wallet sends, in the block that takes it.
func (r *run) revertPayouts() {
	r.t.Helper()
	r.service.work(0) // it is in the pool

	for _, on := range []int{1, 0} {
		if from, ok := r.payer(-1); ok {
			r.put(fmt.Sprintf("the wallet's token is refused: %d", on), map[string]any{
				"from":                 from,
				"to":                   r.tokens[noReturn].Contract,
				"data":                 data("setBlackListed(address,bool)", r.master, on),
				"maxFeePerGas":         hexOf(1e12), // before the payout
				"maxPriorityFeePerGas": hexOf(1e12),
			})
			r.mine(1)
		}
	}
}
