// Package requestkey runs a request once per Idempotency-Key; package account/idempotency declares the stored
// record.
//
// The claim of a key is the first write of the transaction that does the work, and the answer its last: a
// crash in between leaves neither. Concurrent requests with the same key wait on the claim's unique row.
// Answers are sealed with payments.Config.SecretKey before they are stored. Package httpapi calls Run, the
// engine calls Prune.
package requestkey
