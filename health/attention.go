package health

import (
	"time"
)

// Attention counts the objects of one kind that wait or failed for one reason, of all accounts.
type Attention struct {
	// Object is settlement or payout.
	Object  string
	Network string
	// Status is the objects' status, and Reason their reason or failure code; for waiting objects, why they
	// wait.
	Status, Reason string
	// Count is how many there are.
	Count int
	// Oldest is the id of the oldest object; Since is when its wait began, or when it failed.
	Oldest string
	Since  time.Time
	// Message explains to people why the oldest waits or failed.
	Message string
}

// NeedsPerson reports whether only a person can move these objects on: settlements that have failed.
func (a Attention) NeedsPerson() bool { return a.Object == "settlement" && a.Status == "failed" }
