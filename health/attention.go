package health

import (
	"time"
)

// Attention is how many objects of one kind wait or failed for one reason, of all accounts.
type Attention struct {
	// Object is settlement or payout.
	Object  string
	Network string
	// Status is the objects' status, and Reason their reason or failure code; of one that waits, why it waits.
	Status, Reason string
	// Count is how many there are.
	Count int
	// Oldest is the id of the oldest of them, and Since since when that has waited, or when it failed.
	Oldest string
	Since  time.Time
	// Message says for people why the oldest waits or failed.
	Message string
}

// NeedsPerson reports whether nothing moves these objects on but a person: settlements that have failed.
func (a Attention) NeedsPerson() bool { return a.Object == "settlement" && a.Status == "failed" }
