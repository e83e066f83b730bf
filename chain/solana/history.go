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

// pageOfSignatures is how many signatures one call asks for; it is also the most that nodes give.
// Source: solana.com/docs/rpc/http/getsignaturesforaddress.
const pageOfSignatures = 1000

// signatures returns the confirmed transactions that name an address from a slot on, newest first,
// page by page. A node that has not reached minSlot is passed over: it would leave the newest out.
// A page may be shorter than asked for without being the last one: only an empty page, or one that
// reaches below the slot, ends the list. The last transaction before the slot comes along as older;
// nil when there is none.
func (e *endpoint) signatures(
	ctx context.Context,
	address string,
	fromSlot, minSlot uint64,
) (all []signatureInfo, older *signatureInfo, err error) {
	seen := map[string]bool{}

	for before := ""; ; {
		options := map[string]any{
			"commitment":     "confirmed",
			"limit":          pageOfSignatures,
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

		for i, s := range page {
			if seen[s.Signature] || (i > 0 && s.Slot > page[i-1].Slot) ||
				(i == 0 && len(all) > 0 && s.Slot > all[len(all)-1].Slot) {
				return nil, nil, e.Garbled("its history of %s is not in order", address)
			}

			seen[s.Signature] = true
			if s.Slot < fromSlot {
				return all, &s, nil
			}

			all = append(all, s)
		}

		before = page[len(page)-1].Signature
	}
}
