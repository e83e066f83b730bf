package solana

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// signatureInfo is an entry of an address' history.
type signatureInfo struct {
	Signature string          `json:"signature"`
	Slot      uint64          `json:"slot"`
	Time      *int64          `json:"blockTime"` // Unix seconds; nil where it is not known
	Err       json.RawMessage `json:"err"`
}

func (s signatureInfo) failed() bool { return len(s.Err) > 0 && string(s.Err) != "null" }

// isBefore reports whether an entry is known to be older than a time.
func (s signatureInfo) isBefore(t time.Time) bool {
	return !t.IsZero() && s.Time != nil && time.Unix(*s.Time, 0).Before(t)
}

// signaturesPerPage is the number of signatures that one call requests, and the nodes' limit.
// Source: solana.com/docs/rpc/http/getsignaturesforaddress.
const signaturesPerPage = 1000

// page returns the transactions that name an address, newest first, after the newest of those that are known already.
// until ends it, unless it is empty. seen are all that are known. A node behind minSlot refuses, since it would omit
// the newest.
func (e *endpoint) page(
	ctx context.Context,
	address string,
	known []signatureInfo,
	seen map[string]bool,
	until string,
	minSlot uint64,
) ([]signatureInfo, error) {
	options := map[string]any{
		"commitment":     newest{e},
		"limit":          signaturesPerPage,
		"minContextSlot": minSlot,
	}
	if len(known) > 0 {
		options["before"] = known[len(known)-1].Signature
	}

	if until != "" {
		options["until"] = until
	}

	var page []signatureInfo
	if err := e.call(ctx, &page, "getSignaturesForAddress", address, options); err != nil {
		return nil, err
	}

	for i, info := range page {
		if seen[info.Signature] || (i > 0 && info.Slot > page[i-1].Slot) ||
			(i == 0 && len(known) > 0 && info.Slot > known[len(known)-1].Slot) {
			return nil, e.Garbled("its history of %s is not in order", address)
		}

		seen[info.Signature] = true
	}

	return page, nil
}

// signatures returns the transactions that name an address from a slot on, newest first.
// older is the last one before the slot; nil when there is none.
//
// A short page is not the last one: only an empty page, or one that reaches below the slot, ends the list.
func (e *endpoint) signatures(
	ctx context.Context,
	address string,
	fromSlot, minSlot uint64,
) (all []signatureInfo, older *signatureInfo, err error) {
	seen := map[string]bool{}

	for {
		page, err := e.page(ctx, address, all, seen, "", minSlot)
		if err != nil || len(page) == 0 {
			return all, nil, err
		}

		for _, info := range page {
			if info.Slot < fromSlot {
				return all, &info, nil
			}

			all = append(all, info)
		}
	}
}

// listState says how far a list reaches.
type listState int

const (
	listOpen listState = iota // older transactions are left to be listed
	listCut                   // to the position or the time
	listAll                   // to the beginning of the node's history
)

// signaturesAfter goes on with a list of the transactions that name an address after a position, and not before a time,
// newest first, by maxPages at most.
func (e *endpoint) signaturesAfter(
	ctx context.Context,
	address string,
	from accountPosition,
	since time.Time,
	minSlot uint64,
	list []signatureInfo,
) ([]signatureInfo, listState, error) {
	until, seen := from.Signature, map[string]bool{}
	for _, info := range list {
		seen[info.Signature] = true
	}

	for range maxPages {
		page, err := e.page(ctx, address, list, seen, until, minSlot)

		switch {
		case until != "" && failover.RefusedWith(err, codeUnknownBound):
			until = "" // the node has forgotten it, or never had it
			continue
		case err != nil:
			return list, listOpen, err
		case len(page) == 0 && from.Signature != "":
			return list, listCut, nil
		case len(page) == 0:
			return list, listAll, nil
		}

		for _, info := range page {
			if info.Signature == from.Signature || info.Slot < from.Slot || info.isBefore(since) {
				return list, listCut, nil
			}

			list = append(list, info)
		}
	}

	return list, listOpen, nil
}
