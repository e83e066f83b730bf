package failover

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// aloneWait is how long one call waits in all for a node that has asked for it, where no other node could answer;
	// besideWait where one could.
	aloneWait  = maxWait
	besideWait = time.Second

	// maxRepeats is how often one call is repeated at most.
	maxRepeats = 20
	// firstPause and longestPause bound the pause before a call is repeated where the node does not say when.
	firstPause   = 50 * time.Millisecond
	longestPause = 400 * time.Millisecond
)

// Throttled returns a copy of an HTTP client for the calls to this node. A call that the node refuses for the moment is
// repeated by itself, when the node said, so that what other calls have brought is not lost. Calls keep the rate that
// the node has shown to bear. A call that would have to wait too long gets the refusal.
// Each try may take as long as timeout, its whole answer included; the request's context bounds them together.
//
// isLater reports whether the body of an answer with status 200, of which it gets the first 4 KiB, is such a refusal;
// nil for never.
func (n *Node) Throttled(
	client *http.Client,
	timeout time.Duration,
	isLater func(body []byte) bool,
) *http.Client {
	throttled := *client

	base := throttled.Transport
	if base == nil {
		base = http.DefaultTransport
	}

	throttled.Transport = &throttle{node: n, base: base, timeout: timeout, isLater: isLater}

	return &throttled
}

// throttle is the transport of one node.
type throttle struct {
	node    *Node
	base    http.RoundTripper
	timeout time.Duration
	isLater func(body []byte) bool
}

// RoundTrip sends a request, again where the node asks for that.
func (t *throttle) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	left := t.node.patience()

	for repeat := 0; ; repeat++ {
		wait := t.node.throttledFor()
		if wait > left {
			return tooManyRequests(request, wait), nil
		}

		left -= wait
		if err := sleep(ctx, max(wait, t.node.nextCall())); err != nil {
			return nil, err
		}

		answer, err := t.try(request)
		if err != nil {
			return nil, err
		}

		wait, later := laterOf(answer, time.Now(), t.isLater)
		if !later {
			t.node.accepted()
			return answer, nil
		}

		t.node.refused(wait)

		if wait == 0 {
			wait = time.Duration(
				float64(min(firstPause<<min(repeat, 8), longestPause)) * (0.5 + rand.Float64()),
			)
		}

		next, ok := repeated(request)
		if !ok || wait > left || repeat == maxRepeats {
			return answer, nil
		}

		left -= wait
		request = next

		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxLaterText))
		_ = answer.Body.Close()

		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// try sends a request once.
func (t *throttle) try(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), t.timeout)

	answer, err := t.base.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}

	answer.Body = endingBody{answer.Body, cancel}

	return answer, nil
}

// endingBody is a body that ends a context when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close closes the body and ends the context.
func (b endingBody) Close() error {
	defer b.end()

	return b.ReadCloser.Close()
}

// repeated returns a request once more; ok is false where its body cannot be read again.
func repeated(request *http.Request) (next *http.Request, ok bool) {
	next = request.Clone(request.Context())
	if request.Body == nil {
		return next, true
	}

	if request.GetBody == nil {
		return nil, false
	}

	body, err := request.GetBody()
	next.Body = body

	return next, err == nil
}

// tooManyRequests is the answer in place of a node that has asked to be left alone.
func tooManyRequests(request *http.Request, wait time.Duration) *http.Response {
	seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))

	return &http.Response{
		Status:     http.StatusText(http.StatusTooManyRequests),
		StatusCode: http.StatusTooManyRequests,
		Header:     http.Header{"Retry-After": {seconds}},
		Body:       io.NopCloser(strings.NewReader("the node asked to be left alone for " + seconds + " s")),
		Request:    request,
	}
}

func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}

	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// minRate and maxRate bound the learned rate, in calls a second; above maxRate none is kept.
	minRate = 5
	maxRate = 200
	// fasterBy is added to the rate for each call that was answered; slowerBy multiplies it when calls are refused.
	fasterBy = 0.1
	slowerBy = 0.8
)

// bucket is a token bucket with the rate that a node bears, learned from its refusals. The zero bucket has no limit.
type bucket struct {
	rate   float64 // calls a second; 0 for no limit
	tokens float64
	filled time.Time

	second   time.Time // of the count
	answered float64   // in that second
	slowed   time.Time
}

// nextCall takes a token and returns how long to wait for it.
func (b *bucket) nextCall(now time.Time) time.Duration {
	if b.rate == 0 {
		return 0
	}

	b.tokens = min(b.tokens+b.rate*now.Sub(b.filled).Seconds(), max(1, b.rate/2)) - 1
	b.filled = now

	return time.Duration(max(0, -b.tokens) / b.rate * float64(time.Second))
}

// accepted takes an answer into account.
func (b *bucket) accepted(now time.Time) {
	if now.Sub(b.second) >= time.Second {
		b.second, b.answered = now, 0
	}

	b.answered++

	if b.rate > 0 {
		b.rate += fasterBy
	}

	if b.rate > maxRate {
		b.rate = 0
	}
}

// refused takes a refusal into account, of several within a second the first.
func (b *bucket) refused(now time.Time) {
	if now.Sub(b.slowed) < time.Second {
		return
	}

	b.slowed = now

	if b.rate == 0 {
		b.rate, b.tokens, b.filled = max(b.answered, minRate/slowerBy), 0, now
	}

	b.rate = max(b.rate*slowerBy, minRate)
}

// nextCall takes a token of the node's rate and returns how long to wait for it.
func (n *Node) nextCall() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.bucket.nextCall(time.Now())
}

func (n *Node) accepted() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.bucket.accepted(time.Now())
}

// refused takes into account that the node has asked to be left alone for a time; 0 where it did not say for how long.
func (n *Node) refused(wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()

	now := time.Now()
	n.bucket.refused(now)

	if wait > 0 {
		n.throttledUntil = now.Add(wait)
	}
}

// NoteLater notes how long a response asks to be left alone for, for a driver that does not repeat refused calls.
func (n *Node) NoteLater(answer *http.Response) {
	if wait, later := laterOf(answer, time.Now(), nil); later && wait > 0 {
		n.refused(wait)
	}
}

func (n *Node) setAlone(alone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.alone = alone
}

// patience returns how long one call may wait for the node.
func (n *Node) patience() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.alone {
		return aloneWait
	}

	return besideWait
}
