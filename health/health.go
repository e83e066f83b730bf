// Package health holds the report of Engine.Health: how every network is doing.
package health

import (
	"time"
)

// Network is how one network is doing.
type Network struct {
	Network string
	// Height is the last block whose payments are stored, Tip the newest one the node showed.
	Height, Tip uint64
	// Behind is Tip − Height.
	Behind uint64
	// Stopped is why the network is not read any more; empty while it runs. See Resume.
	Stopped string
	// ReadAt is when the cursor last moved.
	ReadAt time.Time
	// Follower is what this process knows; other processes may follow the network instead.
	Follower Follower
}

// Report is how every network is doing.
type Report struct {
	Networks []Network
}

// OK reports whether every network is read and none is stopped.
func (h Report) OK() bool {
	for _, n := range h.Networks {
		if n.Stopped != "" || n.Follower.LastError != "" {
			return false
		}
	}

	return true
}
