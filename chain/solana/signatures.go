package solana

import (
	"context"
	"encoding/json"
)

// signatureInfo is an entry of an address' history.
type signatureInfo struct {
	Signature string          `json:"signature"`
	Slot      uint64          `json:"slot"`
	Err       json.RawMessage `json:"err"`
}

func (s signatureInfo) failed() bool { return len(s.Err) > 0 && string(s.Err) != "null" }

// signaturesPerPage is the number of signatures that one call requests, and the nodes' limit.
// Source: solana.com/docs/rpc/http/getsignaturesforaddress.
const signaturesPerPage = 1000

// signatures returns the confirmed transactions that name an address from a slot on, newest first.
// older is the last one before the slot; nil when there is none.
//
// A node behind minSlot refuses, since it would omit the newest. A short page is not the last one: only
// an empty page, or one that reaches below the slot, ends the list.
func (e *endpoint) signatures(
	ctx context.Context,
	address string,
	fromSlot, minSlot uint64,
) (all []signatureInfo, older *signatureInfo, err error) {
	seen := map[string]bool{}

	for before := ""; ; {
		options := map[string]any{
			"commitment":     "confirmed",
			"limit":          signaturesPerPage,
			"minContextSlot": minSlot,
		}
		if before != "" {
			options["before"] = before
		}

		var page []signatureInfo
		if err := e.call(ctx, &page, "getSignaturesForAddress", address, options); err != nil {
			return nil, nil, err
		}

		if len(page) == 0 {
			return all, nil, nil
		}

		for i, info := range page {
			if seen[info.Signature] || (i > 0 && info.Slot > page[i-1].Slot) ||
				(i == 0 && len(all) > 0 && info.Slot > all[len(all)-1].Slot) {
				return nil, nil, e.Garbled("its history of %s is not in order", address)
			}

			seen[info.Signature] = true
			if info.Slot < fromSlot {
				return all, &info, nil
			}

			all = append(all, info)
		}

		before = page[len(page)-1].Signature
	}
}

// signaturesBefore returns the confirmed transactions that name an address before one of them, newest first, at most as
// many as limit.
func (e *endpoint) signaturesBefore(
	ctx context.Context,
	address, before string,
	limit int,
) (page []signatureInfo, err error) {
	err = e.call(ctx, &page, "getSignaturesForAddress", address, map[string]any{
		"commitment": "confirmed",
		"limit":      limit,
		"before":     before,
	})

	return page, err
}
