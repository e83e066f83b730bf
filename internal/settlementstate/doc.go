// Package settlementstate holds the transitions of a settlement and the arithmetic of its fee (decisions part
// 4).
//
// Each transition is pure, legal from the statuses that its comment names, and does nothing if its result
// already holds. Anything else is fault.State with code settlement_state and leaves the record as it was.
// Records are those of package settlement. The transitions live here because only the release of payments
// (internal/sweep) makes them.
package settlementstate
