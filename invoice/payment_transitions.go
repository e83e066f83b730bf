package invoice

// This file holds the transitions of a payment, which change the record and return its events. They are idempotent: a
// known fact changes nothing. What the table of decisions part 3 does not allow is fault.State and changes nothing.
