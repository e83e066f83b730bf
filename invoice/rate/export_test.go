package rate

// Round is round.
var Round = round
