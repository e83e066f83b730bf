// Package payoutstate holds the parts of payouts that only our own workers need: whether bytes may be signed
// for one, and the lists of statuses. The transitions that a merchant's operations make are in package
// payout.
package payoutstate
