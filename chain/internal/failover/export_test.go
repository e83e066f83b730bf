package failover

import (
	"net/http"
	"time"
)

// LaterOf is laterOf.
func LaterOf(answer *http.Response, now time.Time) (wait time.Duration, later bool) {
	return laterOf(answer, now, nil)
}

// Refused has the node ask to be left alone for a time.
func (n *Node) Refused(wait time.Duration) { n.refused(time.Now(), wait) }

// SetAlone says whether no other node could answer.
func (n *Node) SetAlone(alone bool) { n.setAlone(alone) }
