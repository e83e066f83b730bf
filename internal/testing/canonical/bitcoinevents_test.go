//go:build unix

package canonical_test

// This file is what happens in a random run on Bitcoin's rules.

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

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
		"fee_rate": 80,
		"outputs":  []map[string]string{{r.address(): "0.0001"}},
	})
	if err == nil {
		r.payer[bumped.Txid] = true
	}

	r.say("payment %s displaced by %s: %v", hash, bumped.Txid, err)
}
