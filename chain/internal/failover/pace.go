package failover

import "time"

// How often a node is called that refuses calls.
//
// What a node refuses is no measure of what it bears: a provider with a limit refuses what is above it, one that is
// overloaded, or spreads calls over others, refuses a share of them at whatever rate. So a rate is learned of what is
// answered:
//
//   - A node that refuses calls is called as often as it answered while it did. If it has a limit, it now refuses few.
//   - If it refuses as large a share as before, its refusals do not depend on the rate: the earlier rate is taken back,
//     and refusals change none for a while.
//   - A rate that is used up and refused no call is raised by a quarter.
//
// A refusal that says for how long has the lower rate tried at once: each costs that time.
//
// The lower rate is tried at the same moments of the clock by all processes: what one of them leaves to others would
// hide from it whether the rate matters.

const (
	// tolerated is the share of calls that a node may refuse while its rate is kept.
	tolerated = 0.1
	// roundFor is how long calls are counted before something is made of it, and roundCalls how many they are at least.
	roundFor   = 2 * time.Second
	roundCalls = 10

	// A lower rate is tried until a node whose refusals do not depend on it would have refused trialRefusals calls.
	// They do not where it refused inVain of them; trials begin freeFor after one that was in vain.
	trialRefusals = 8
	inVain        = 4
	freeFor       = 30 * time.Second
	// settles is how long what was called before a trial may count in a node's limit.
	settles = time.Second

	// belowAnswered is the rate that is tried, as a share of what was answered. raised is by what a rate is raised, and
	// raisedFree while a share above mostly is refused whatever the rate: one that is too low costs most then.
	belowAnswered = 0.9
	raised        = 1.25
	raisedFree    = 2
	mostly        = 0.6
	// A rate that the node refused with the word for how long is not raised for holdFor times that, at most
	// longestHold: each refusal costs as much.
	holdFor     = 30
	longestHold = 10 * time.Minute

	// leastRate and mostRate bound the rate, in calls a second; above mostRate none is kept.
	leastRate = 1
	mostRate  = 200
	// burst is how many seconds' calls may be made at once.
	burst = 0.1
)

// pace is the rate at which a node is called: a token bucket. The zero pace has no limit.
type pace struct {
	rate   float64 // calls a second; 0 for no limit
	tokens float64
	filled time.Time

	round, last round
	answers     answers
	trial       *trial    // nil where none is made
	freeUntil   time.Time // until when refusals do not lower the rate
	freeShare   float64   // of the calls that are refused meanwhile, as far as the rate makes no difference
	holdUntil   time.Time // until when it is not raised
	silent      *float64  // the rate that the next answer takes back; nil but where nothing was answered
	waits       bool      // a call waits for a token
}

// round counts the calls of a time.
type round struct {
	began             time.Time
	answered, refused int
	waited            int // for a token
	// busy are the seconds in which calls were refused, and answeredBusy what was answered in them.
	busy, answeredBusy int
}

// trial is a lower rate that is tried.
type trial struct {
	before float64   // the rate that is taken back
	share  float64   // of the calls that were refused before
	from   time.Time // calls that were made earlier do not count
}

func (r round) calls() int { return r.answered + r.refused }

// share returns the share of the calls that were refused.
func (r round) share() float64 { return float64(r.refused) / float64(max(1, r.calls())) }

// answers counts the answers of this second and the one before it.
type answers struct {
	second            time.Time
	answered, refused int
	before            int
}

// nextCall takes a token and returns 0, or returns how long it takes until there is one.
func (p *pace) nextCall(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}

	p.tokens = min(p.tokens+p.rate*now.Sub(p.filled).Seconds(), max(1, p.rate*burst))
	p.filled = now

	if p.tokens >= 1 {
		p.tokens--

		if p.waits {
			p.round.waited++
			p.waits = false
		}

		return 0
	}

	p.waits = true

	return max(time.Millisecond, time.Duration((1-p.tokens)/p.rate*float64(time.Second)))
}

// accepted takes the answer to a call of a moment into account, and reports whether it ends a round.
func (p *pace) accepted(called, now time.Time) (ended bool) {
	p.turnSecond(now)

	if p.isBeforeTrial(called) {
		return false
	}

	p.answers.answered++
	p.round.answered++

	if p.silent != nil {
		p.setRate(*p.silent, now)
		p.silent, p.round = nil, round{began: now}
	}

	return p.endRound(now)
}

// refused takes the refusal of a call of a moment into account, and for how long the node wants to be left alone; 0
// where it does not say. It reports whether it ends a round.
func (p *pace) refused(called, now time.Time, wait time.Duration) (ended bool) {
	p.turnSecond(now)

	if p.isBeforeTrial(called) {
		return false
	}

	p.answers.refused++
	p.round.refused++

	if wait > 0 && !now.Before(p.freeUntil) {
		p.lowerAtOnce(now, wait)
	}

	return p.endRound(now)
}

// isBeforeTrial reports whether a call was made before the trial that is under way.
func (p *pace) isBeforeTrial(called time.Time) bool {
	return p.trial != nil && called.Before(p.trial.from)
}

// lowerAtOnce tries less than what was answered in the last second.
func (p *pace) lowerAtOnce(now time.Time, wait time.Duration) {
	if p.trial == nil {
		p.trial = &trial{before: p.rate, share: p.round.share()}
		p.round = round{began: now}
	}

	p.trial.from = now.Add(wait)
	p.holdUntil = now.Add(min(longestHold, holdFor*wait))

	gone := now.Sub(p.answers.second).Seconds()
	if answered := float64(p.answers.answered) + float64(p.answers.before)*(1-gone); answered >= 1 {
		p.setRate(max(leastRate, belowAnswered*belowAnswered*answered), now)
	}
}

// turnSecond begins a new second.
func (p *pace) turnSecond(now time.Time) {
	second := now.Truncate(time.Second)
	if second.Equal(p.answers.second) {
		return
	}

	if p.answers.refused > 0 {
		p.round.busy++
		p.round.answeredBusy += p.answers.answered
	}

	before := 0
	if second.Sub(p.answers.second) == time.Second {
		before = p.answers.answered
	}

	p.answers = answers{second: second, before: before}

	if p.round.began.IsZero() {
		p.round.began = now
	}
}

// endRound adapts the rate once a round has enough calls, and begins the next round. ended reports whether it did.
func (p *pace) endRound(now time.Time) (ended bool) {
	r := p.round

	if p.trial != nil {
		return p.judge(now)
	}

	if r.calls() < roundCalls || r.began.Truncate(roundFor).Equal(now.Truncate(roundFor)) {
		return false
	}

	p.last, p.round = r, round{began: now}

	switch {
	case r.answered == 0:
		p.calmDown(now, r)
	case r.share() <= tolerated, now.Before(p.freeUntil) && r.share() <= p.freeShare+tolerated:
		p.raise(now, r)
	case r.busy > 0:
		p.trial = &trial{before: p.rate, share: r.share(), from: now.Add(settles)}
		p.setRate(max(leastRate, belowAnswered*float64(r.answeredBusy)/float64(r.busy)), now)
	}

	return true
}

// judge ends a trial once it shows whether the node refuses less at the lower rate, and reports whether it does.
func (p *pace) judge(now time.Time) (ended bool) {
	switch r := p.round; {
	case r.refused >= inVain:
		p.setRate(p.trial.before, now)
		p.freeUntil, p.freeShare, p.holdUntil = now.Add(freeFor), p.trial.share, time.Time{}
	case float64(r.calls())*p.trial.share < trialRefusals:
		return false
	}

	p.last, p.round, p.trial = p.round, round{began: now}, nil

	return true
}

// calmDown halves the rate while nothing is answered. The first answer takes that back.
func (p *pace) calmDown(now time.Time, r round) {
	rate := p.rate
	if p.silent == nil {
		p.silent = &rate
	}

	if rate == 0 {
		rate = float64(r.calls()) / max(1, now.Sub(r.began).Seconds())
	}

	p.setRate(max(leastRate, rate/2), now)
}

// raise raises a rate that calls had to wait for.
func (p *pace) raise(now time.Time, r round) {
	if p.rate == 0 || now.Before(p.holdUntil) || 2*r.waited < r.calls() {
		return
	}

	by := raised
	if min(r.share(), p.freeShare) > mostly {
		by = raisedFree
	}

	if p.setRate(p.rate*by, now); p.rate > mostRate {
		p.rate = 0
	}
}

func (p *pace) setRate(rate float64, now time.Time) {
	if p.rate == 0 {
		p.tokens, p.filled = 0, now
	}

	p.rate = rate
}
