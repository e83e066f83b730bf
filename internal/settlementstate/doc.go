// Package settlementstate holds the moves of a settlement and the arithmetic of its fee (decisions part 4).
//
// Each move is pure, legal from the statuses its comment names, and does nothing when what it says is already so;
// anything else is fault.State with code settlement_state and leaves the record as it was. Records are those of package
// settlement. They live here and not there because only the release of payments (internal/sweep) makes these moves.
package settlementstate
