package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The rules of states, events and progress.
const (
	ruleStates   = "states move along the tables"
	ruleSequence = "events are told in sequence, across restores too"
	ruleObject   = "an event shows the object as it was left"
	ruleCreated  = "an id begins with when its object was created"
	ruleNumber   = "an invoice's number is given out once"
	ruleValued   = "a confirmation shows its value"
	ruleProgress = "a healthy process is not held up"
	ruleRest     = "everything ends"
	ruleReleased = "every settlement ends"
	ruleWaiting  = "what arrived is credited soon"
	ruleFair     = "an honest deposit pays for itself alone"
	ruleFrozen   = "no wallet is frozen without cause"
)

// moves are the tables of the specification (part 3) and of the decisions (parts 2 to 6), from each status to
// those that one transaction may lead to. "" is no record yet.
var moves = map[string]map[string]string{
	"invoice": {
		"":          "open pending underpaid paid",
		"open":      "pending paid underpaid expired canceled refunded",
		"pending":   "open underpaid paid refunded",
		"underpaid": "open pending paid expired canceled refunded",
		"paid":      "open pending underpaid expired canceled refunded",
		"expired":   "paid refunded",
		"canceled":  "paid refunded",
		"refunded":  "",
	},
	"payment": {
		"":          "detected confirmed",
		"detected":  "confirmed orphaned dropped",
		"confirmed": "orphaned detected dropped",
		"orphaned":  "detected confirmed dropped",
		"dropped":   "detected confirmed",
	},
	"settlement": {
		"":          "pending released",
		"pending":   "releasing held failed",
		"held":      "releasing failed pending",
		"releasing": "released failed",
		"released":  "reverted",
		"reverted":  "pending releasing released",
		"failed":    "pending releasing released",
	},
	"payout": {
		"":           "pending",
		"pending":    "processing failed",
		"processing": "included failed confirmed",
		"included":   "processing confirmed failed",
		"confirmed":  "processing",
		"failed":     "",
	},
	"refund": {
		"":          "pending succeeded",
		"pending":   "succeeded failed canceled",
		"succeeded": "pending",
		"failed":    "",
		"canceled":  "",
	},
}

// acknowledgedMoves are those that one transaction may also lead to when a person acknowledges what a final one
// was: all the moves of the tables on the way.
var acknowledgedMoves = map[string]map[string]string{
	"payout":     {"pending": "confirmed", "processing": "confirmed"},
	"settlement": {"pending": "released", "held": "released"},
}

// checkStates checks the moves of a commit.
func (o *oracle) checkStates(c *commit) {
	r := o.records
	for id, now := range c.invoices {
		o.checkMove("invoice", id, string(r.invoices[id].Status), string(now.Status))
	}

	for id, now := range c.payments {
		if o.checkMove("payment", id, string(r.payments[id].Status), string(now.Status)) &&
			now.Status == invoice.Confirmed {
			o.checkDepth(c, now)
		}
	}

	for id, now := range c.settlements {
		if o.checkMove("settlement", id, o.through(c, now), string(now.Status)) &&
			now.Status == settlement.Failed {
			o.checkFailedSettlement(now)
		}
	}

	for id, now := range c.payouts {
		if !o.checkMove("payout", id, string(r.payouts[id].Status), string(now.Status)) {
			continue
		}

		switch now.Status {
		case payout.Failed:
			o.checkFailedPayout(now)
		case payout.Confirmed:
			o.checkConfirmedPayout(now)
		case payout.Processing:
			o.checkSigned(r.payouts[id], now)
		case payout.Pending, payout.Included:
		}
	}

	for id, now := range c.refunds {
		o.checkMove("refund", id, string(r.refunds[id].Status), string(now.Status))
	}
}

// through returns the status that a settlement moves on from: a fork may take its payment back and show it again in
// one transaction, which shows that it was reverted or failed on the way; and one that waits anew, as its release was
// given up, may be released by the sweep of before, which was in a block. So is one that a sweep moved in the place of
// another: it waits again once that has left its block, and a fork that takes both has it fail.
func (o *oracle) through(c *commit, now settlement.Settlement) string {
	before := o.records.settlements[now.ID]
	if now.Status == settlement.Reverted {
		return string(before.Status)
	}

	_, mined := o.ledgers[now.Network].blocks[now.SweepTx]
	if waits(before) && now.Status == settlement.Released && mined {
		return string(settlement.Releasing)
	}

	for _, e := range c.events {
		switch {
		case e.ObjectID != before.ID:
		case e.Type == event.SettlementReverted && before.Status == settlement.Released:
			if now.Status == settlement.Failed {
				return string(settlement.Pending)
			}

			return string(settlement.Reverted)
		case e.Type == event.SettlementFailed && before.Status == settlement.Releasing &&
			now.Status != settlement.Failed:
			return string(settlement.Failed)
		}
	}

	return string(before.Status)
}

// checkMove checks one move and reports whether there was one.
func (o *oracle) checkMove(object, id, from, to string) bool {
	if from == to {
		return false
	}

	o.harness.account.States[object+" "+to]++

	allowed := strings.Fields(moves[object][from])
	if o.harness.acknowledging {
		allowed = append(allowed, strings.Fields(acknowledgedMoves[object][from])...)
	}

	if !slices.Contains(allowed, to) {
		o.violate(ruleStates, "%s %s went from %q to %q", object, id, from, to)
	}

	return true
}

// shown is what the oracle reads of an event's object.
type shown struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   string `json:"amount"`
	USDValue string `json:"usd_value"`
	Payment  *shown `json:"payment"`
}

// epochBits is by how much a new epoch raises the sequences of events: docs/backups.md says 2^20.
const epochBits = 20

// checkEvents checks sequence and object of the events of a commit.
func (o *oracle) checkEvents(c *commit) {
	for _, e := range c.events {
		o.records.events[e.ID] = e.Owner.AccountID
		o.checkCreated(strings.TrimPrefix(e.ID, "evt_"), e.CreatedAt)

		number := e.Sequence - int64(o.harness.epoch)<<epochBits
		if last := o.records.sequences[e.ObjectID]; number != last+1 {
			o.violate(ruleSequence, "%s of %s has sequence %d after %d", e.Type, e.ObjectID, e.Sequence, last)
		}

		if last := o.published[e.ObjectID]; e.Sequence <= last && o.harness.plan.Epochs {
			o.violate(
				ruleSequence,
				"%s of %s has sequence %d after %d was published",
				e.Type,
				e.ObjectID,
				e.Sequence,
				last,
			)
		}

		o.records.sequences[e.ObjectID], o.published[e.ObjectID] = number, e.Sequence

		var envelope struct {
			Data struct {
				Object shown `json:"object"`
			} `json:"data"`
		}
		if err := json.Unmarshal(e.Envelope, &envelope); err != nil {
			o.violate(ruleObject, "the envelope of %s cannot be read: %v", e.ID, err)
			continue
		}

		o.checkObject(c, e, envelope.Data.Object)
	}
}

// checkCreated compares an id with the time of creation, by which lists find what was created in a stretch of time.
func (o *oracle) checkCreated(id string, at time.Time) {
	if millis, err := strconv.ParseInt(id[:12], 16, 64); err != nil || millis != at.UnixMilli() {
		o.violate(ruleCreated, "%s was created at %s", id, at)
	}
}

// checkNumber checks that an invoice's number is that of no other invoice of its owner.
func (o *oracle) checkNumber(inv invoice.Invoice) {
	key := fmt.Sprint(inv.Owner.AccountID, "/", inv.Number)

	if other, known := o.records.numbers[key]; known && other != inv.ID {
		o.violate(ruleNumber, "invoices %s and %s have the number %d", other, inv.ID, inv.Number)
	}

	o.records.numbers[key] = inv.ID
}

// checkCreations compares the records of a commit with their ids.
func (o *oracle) checkCreations(c *commit) {
	for id, invoice := range c.invoices {
		o.checkCreated(id, invoice.CreatedAt)
	}

	for id, payout := range c.payouts {
		o.checkCreated(id, payout.CreatedAt)
	}

	for id, refund := range c.refunds {
		o.checkCreated(id, refund.CreatedAt)
	}

	for id, settlement := range c.settlements {
		o.checkCreated(id, settlement.CreatedAt)
	}
}

// checkObject compares an event's object with the record as the commit left it.
func (o *oracle) checkObject(c *commit, e event.Event, object shown) {
	if object.Payment != nil {
		object = *object.Payment
	}

	var status string

	switch id := object.ID; {
	case has(c.payments, id):
		p := c.payments[id]
		status = string(p.Status)
		o.checkPaymentShown(e, p, object)
	case has(c.invoices, id):
		status = string(c.invoices[id].Status)
	case has(c.payouts, id):
		status = string(c.payouts[id].Status)
	case has(c.refunds, id):
		status = string(c.refunds[id].Status)
	case has(c.settlements, id):
		status = string(c.settlements[id].Status)
	default:
		return
	}

	if object.Status != status {
		o.violate(
			ruleObject,
			"%s shows %s as %s, and it was left %s",
			e.Type,
			object.ID,
			object.Status,
			status,
		)
	}
}

func has[T any](records map[string]T, id string) bool {
	_, found := records[id]

	return found
}

// checkPaymentShown checks amount and value of a payment in an event.
func (o *oracle) checkPaymentShown(e event.Event, p invoice.Payment, object shown) {
	if object.Amount != p.Amount.String() {
		o.violate(
			ruleObject,
			"%s shows payment %s with %s, and it was left with %s",
			e.Type,
			p.ID,
			object.Amount,
			p.Amount,
		)
	}

	valued := p.USDValue.Valid ||
		o.harness.feed.works() && o.harness.running.offset == 0 && p.Status == invoice.Confirmed

	confirms := e.Type == event.InvoicePaymentConfirmed || e.Type == event.DepositPaymentConfirmed
	if confirms && valued && object.USDValue == "" {
		o.violate(
			ruleValued,
			"%s shows payment %s without usd_value, and there is a fresh price",
			e.Type,
			p.ID,
		)
	}
}

// progressBound is how long a healthy process that steps may leave a block unread.
const progressBound = 3 * time.Minute

// stepGap is the longest time between two steps of a process that counts as running.
const stepGap = 15 * time.Second

// catchUp is how many blocks a step reads at least that catches up.
const catchUp = 25

// catchesUp reports whether the blocks of a network were read by the dozen since the step before.
func (o *oracle) catchesUp(w *watch) (does bool) {
	for slug := range o.ledgers {
		height := o.records.cursors[slug].At.Height
		does = does || w.read[slug] > 0 && height >= w.read[slug]+catchUp
		w.read[slug] = height
	}

	return does
}

// anyStopped reports whether a network is stopped, until a person has it read on.
func (o *oracle) anyStopped() (is bool) {
	for _, cursor := range o.records.cursors {
		is = is || cursor.Stopped != ""
	}

	return is
}

// stepped watches over progress: what one healthy process can read is read.
func (o *oracle) stepped(p *process) {
	now := o.harness.clock.now()

	w := o.watches[p.index]
	if w == nil || !p.healthy() || now.Sub(w.last) > stepGap {
		o.watches[p.index] = &watch{since: now, last: now, read: map[string]uint64{}}
		return
	}

	w.last = now
	if o.catchesUp(w) || o.anyStopped() {
		w.since = now // restored records may lack a thousand blocks, and so may a network that waits for a person
	}

	if now.Sub(w.since) < progressBound {
		return
	}

	for slug, l := range o.ledgers {
		cursor, known := o.records.cursors[slug]
		if !known || cursor.Stopped != "" || cursor.At.Height >= l.tip().ref.Height {
			continue
		}

		next := l.canonical[cursor.At.Height+1]
		if now.Sub(next.ref.Time) > progressBound {
			o.violate(
				ruleProgress, "block %d of %s is unread for %s while process %d is healthy",
				next.ref.Height, slug, now.Sub(next.ref.Time), p.index,
			)
			delete(o.watches, p.index)

			return
		}
	}
}
