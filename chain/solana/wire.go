package solana

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// What nodes answer, as far as it is read. Amounts are read from integers and digits only, never
// from uiAmount.

// confirmed is the parameter that asks for everything up to the tip.
type confirmed struct{}

func (confirmed) MarshalJSON() ([]byte, error) { return []byte(`{"commitment":"confirmed"}`), nil }

// header is a block without its transactions.
type header struct {
	slot         uint64
	Hash         string  `json:"blockhash"`
	Parent       string  `json:"previousBlockhash"`
	ParentSlot   uint64  `json:"parentSlot"`
	MaybeHeight  *uint64 `json:"blockHeight"`
	MaybeTime    *int64  `json:"blockTime"`
	Height       uint64  `json:"-"`
	Transactions []struct {
		Transaction wireTransaction `json:"transaction"`
		Meta        *meta           `json:"meta"`
	} `json:"transactions"`
}

func (h header) ref() chain.Ref {
	return chain.Ref{Height: h.Height, Hash: h.Hash, Time: time.Unix(*h.MaybeTime, 0).UTC()}
}

// header reads the block of a slot, without its transactions.
func (e *endpoint) header(ctx context.Context, slot uint64) (header, error) {
	return e.block(ctx, slot, "none")
}

func (e *endpoint) block(ctx context.Context, slot uint64, details string) (header, error) {
	var h *header

	err := e.call(ctx, &h, "getBlock", slot, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "base64",
		"transactionDetails":             details,
		"rewards":                        false,
		"maxSupportedTransactionVersion": 0,
	})
	if err != nil {
		return header{}, err
	}

	if h == nil {
		return header{}, e.Garbled("it has no block for slot %d and does not say why", slot)
	}

	if h.MaybeHeight == nil || h.MaybeTime == nil || *h.MaybeTime <= 0 || !isHash(h.Hash) ||
		!isHash(h.Parent) ||
		(h.ParentSlot >= slot && slot > 0) {
		return header{}, e.Garbled("its block of slot %d has no height, time, hash or parent", slot)
	}

	h.slot, h.Height = slot, *h.MaybeHeight

	return *h, nil
}

func isHash(s string) bool {
	_, err := solanago.PublicKeyFromBase58(s)
	return err == nil
}

// wireTransaction is a transaction's bytes.
type wireTransaction []byte

// UnmarshalJSON reads ["<base64>", "base64"].
func (w *wireTransaction) UnmarshalJSON(text []byte) error {
	var pair [2]string
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}

	raw, err := base64.StdEncoding.DecodeString(pair[0])
	*w = raw

	return err
}

// meta is what execution left behind.
type meta struct {
	Err               json.RawMessage     `json:"err"`
	Fee               uint64              `json:"fee"`
	PreBalances       []uint64            `json:"preBalances"`
	PostBalances      []uint64            `json:"postBalances"`
	PreTokenBalances  []tokenBalance      `json:"preTokenBalances"`
	PostTokenBalances []tokenBalance      `json:"postTokenBalances"`
	Inner             []innerInstructions `json:"innerInstructions"`
	LoadedAddresses   struct {
		Writable []string `json:"writable"`
		Readonly []string `json:"readonly"`
	} `json:"loadedAddresses"`
}

func (m *meta) failed() bool { return len(m.Err) > 0 && string(m.Err) != "null" }

type tokenBalance struct {
	AccountIndex int    `json:"accountIndex"`
	Mint         string `json:"mint"`
	Owner        string `json:"owner"`
	Amount       struct {
		Digits u64 `json:"amount"`
	} `json:"uiTokenAmount"`
}

// u64 is a 64-bit amount in digits.
type u64 uint64

// UnmarshalJSON reads "123"; more than 64 bits is an error.
func (u *u64) UnmarshalJSON(text []byte) error {
	var digits string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}

	n, err := strconv.ParseUint(digits, 10, 64)
	*u = u64(n)

	return err
}

// accountInfo is an account; data is its bytes.
type accountInfo struct {
	Lamports   uint64          `json:"lamports"`
	Owner      string          `json:"owner"`
	Executable bool            `json:"executable"`
	Data       wireTransaction `json:"data"`
}

// accounts reads up to any number of accounts, nil for each that does not exist, and the slot that
// they are of: at least minSlot.
func (e *endpoint) accounts(
	ctx context.Context,
	keys []solanago.PublicKey,
	minSlot uint64,
) ([]*accountInfo, uint64, error) {
	const most = 100 // Source: solana.com/docs/rpc/http/getmultipleaccounts

	var (
		all    []*accountInfo
		oldest uint64
	)

	for start := 0; start < len(keys); start += most {
		part := keys[start:min(start+most, len(keys))]

		var answer struct {
			Context struct {
				Slot uint64 `json:"slot"`
			} `json:"context"`
			Value []*accountInfo `json:"value"`
		}

		options := map[string]any{"commitment": "confirmed", "encoding": "base64"}
		if minSlot > 0 {
			options["minContextSlot"] = minSlot
		}

		if err := e.call(ctx, &answer, "getMultipleAccounts", part, options); err != nil {
			return nil, 0, err
		}

		if len(answer.Value) != len(part) || answer.Context.Slot < minSlot {
			return nil, 0, e.Garbled(
				"it answered %d of %d accounts, of slot %d",
				len(answer.Value), len(part), answer.Context.Slot,
			)
		}

		if start == 0 || answer.Context.Slot < oldest {
			oldest = answer.Context.Slot
		}

		all = append(all, answer.Value...)
	}

	return all, oldest, nil
}
