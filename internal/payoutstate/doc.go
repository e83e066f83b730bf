// Package payoutstate holds what only our own work asks of payouts: whether bytes may be signed for one,
// and the lists of statuses. The moves that the merchant's operations make are in package payout.
package payoutstate
