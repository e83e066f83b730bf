package failover

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

const (
	// aloneWait is how long one call waits in all for a node that has asked for it, where no other node could answer;
	// besideWait where one could.
	aloneWait  = maxWait
	besideWait = time.Second

	// maxRepeats is how often one call is repeated at most.
	maxRepeats = 20
	// firstPause and longestPause bound the pause before a call is repeated where the node does not say when. The rate
	// of all calls is not theirs to keep (pace).
	firstPause   = 50 * time.Millisecond
	longestPause = 100 * time.Millisecond
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

	throttled.Transport = &throttle{
		node:    n,
		base:    base,
		timeout: timeout,
		isLater: isLater,
		turn:    make(chan struct{}, 1),
	}

	return &throttled
}

// throttle is the transport of one node.
type throttle struct {
	node    *Node
	base    http.RoundTripper
	timeout time.Duration
	isLater func(body []byte) bool
	turn    chan struct{} // of the call that waits for the node; the others are in line behind it
}

// RoundTrip sends a request, again where the node asks for that.
func (t *throttle) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	left := t.node.patience()

	for repeat := 0; ; repeat++ {
		wait, err := t.awaitTurn(ctx, &left)
		if err != nil {
			return nil, err
		}

		if wait > 0 {
			return tooManyRequests(request, wait), nil
		}

		called := time.Now()

		answer, err := t.try(request)
		if err != nil {
			return nil, err
		}

		wait, later := laterOf(answer, time.Now(), t.isLater)
		if !later {
			t.node.accepted(called)
			return answer, nil
		}

		t.node.refused(called, wait)

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

// awaitTurn waits until the node may be called. It subtracts the delays that the node asked for from left. If the node
// asks for a longer delay than left, awaitTurn does not wait, and tooLong is that delay.
func (t *throttle) awaitTurn(ctx context.Context, left *time.Duration) (tooLong time.Duration, err error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}

	for {
		wait := t.node.throttledFor()
		if wait > *left {
			return wait, nil
		}

		*left -= wait

		if wait == 0 {
			wait = t.node.nextCall()
		}

		if wait == 0 {
			return 0, nil
		}

		// The rate may change meanwhile.
		if err := sleep(ctx, min(wait, max(longestPause, t.node.throttledFor()))); err != nil {
			return 0, err
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

// nextCall takes a token of the node's rate, or returns how long it takes until there is one.
func (n *Node) nextCall() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.pace.nextCall(time.Now())
}

// accepted takes an answer to a call into account, which was made at a time.
func (n *Node) accepted(called time.Time) {
	n.mu.Lock()
	ended := n.pace.accepted(called, time.Now())
	n.mu.Unlock()

	if ended {
		n.noteRefusals()
	}
}

// refused takes into account that the node refused a call, which was made at a time, and has asked to be left alone for
// a time; 0 where it did not say for how long.
func (n *Node) refused(called time.Time, wait time.Duration) {
	n.mu.Lock()
	ended := n.pace.refused(called, time.Now(), wait)
	n.mu.Unlock()

	n.leaveAlone(wait)

	if ended {
		n.noteRefusals()
	}
}

// leaveAlone has the node left alone for a time.
func (n *Node) leaveAlone(wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if until := time.Now().Add(wait); wait > 0 && until.After(n.throttledUntil) {
		n.throttledUntil = until
	}
}

// noteRefusals notes that the node refuses calls, or no longer does.
func (n *Node) noteRefusals() {
	n.mu.Lock()
	last := n.pace.last
	n.mu.Unlock()

	n.Note(chain.NodeRefuses, last.share() > tolerated, fmt.Sprintf(
		"it refused %d of %d calls as too many; each is made again", last.refused, last.calls(),
	))
}

// NoteLater notes how long a response asks to be left alone for, for a driver that does not repeat refused calls.
func (n *Node) NoteLater(answer *http.Response) {
	if wait, later := laterOf(answer, time.Now(), nil); later {
		n.leaveAlone(wait)
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
