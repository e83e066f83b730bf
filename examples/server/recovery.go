package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// printRecovery writes what another wallet needs to find and spend the money of the seed; see docs/recovery.md. It asks
// no node.
func printRecovery(
	ctx context.Context,
	log *slog.Logger,
	s settings,
	private bool,
	to io.Writer,
) (err error) {
	mnemonic, err := readSecret("MNEMONIC_FILE", s.mnemonicFile, "a BIP-39 mnemonic")
	if err != nil {
		return err
	}

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		return fmt.Errorf("MNEMONIC_FILE holds no seed: %w", err)
	}

	drivers, err := s.drivers(log)
	if err != nil {
		return err
	}

	db, err := openDatabase(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()

	records, err := postgres.New(db, postgres.Options{})
	if err != nil {
		return err
	}

	var spaces []chain.Space
	for _, d := range drivers {
		spaces = append(spaces, d.Network().Space())
	}

	return writeRecovery(ctx, records, keys, spaces, private, to)
}

// usedKey is a key whose address was shown.
type usedKey struct {
	key     chain.KeyRef
	address chain.Address
	since   time.Time
}

// writeRecovery writes the keys of each key space on record: for Bitcoin as an argument of importdescriptors, else a
// line for each key with its path and address.
func writeRecovery(
	ctx context.Context,
	records store.Reader,
	keys *hdkey.Signer,
	spaces []chain.Space,
	private bool,
	to io.Writer,
) error {
	slices.SortFunc(spaces, func(a, b chain.Space) int {
		return cmp.Or(
			cmp.Compare(a.Family, b.Family),
			cmp.Compare(fmt.Sprint(a.Livemode), fmt.Sprint(b.Livemode)),
		)
	})

	for _, space := range slices.Compact(spaces) {
		used, err := usedKeys(ctx, records, space)
		if err != nil {
			return err
		}

		for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
			if len(used[role]) == 0 {
				continue
			}

			mode := "test"
			if space.Livemode {
				mode = "live"
			}

			fmt.Fprintf(to, "# %s, %s, %s keys: %d\n", space.Family, mode, role, len(used[role]))

			if space.Family == chain.Bitcoin {
				err = writeDescriptors(keys, used[role], private, to)
			} else {
				err = writePaths(keys, used[role], to)
			}

			if err != nil {
				return err
			}
		}
	}

	return nil
}

// usedKeys returns the keys of a key space whose addresses are on record, by role.
func usedKeys(
	ctx context.Context,
	records store.Reader,
	space chain.Space,
) (map[chain.Role][]usedKey, error) {
	const page = 1000

	used := map[chain.Role][]usedKey{}

	for after := chain.Address(""); ; {
		found, err := records.AddressesAfter(ctx, space, after, page)
		if err != nil {
			return nil, err
		}

		for _, a := range found {
			used[a.Key.Role] = append(used[a.Key.Role], usedKey{a.Key, a.Address, a.CreatedAt})
			after = a.Address
		}

		if len(found) < page {
			return used, nil
		}
	}
}

func writeDescriptors(keys *hdkey.Signer, used []usedKey, private bool, to io.Writer) error {
	indexes, since := make([]uint32, len(used)), used[0].since
	for i, u := range used {
		indexes[i] = u.key.Index

		if u.since.Before(since) {
			since = u.since
		}
	}

	describe := keys.Descriptors
	if private {
		describe = keys.PrivateDescriptors
	}

	descriptors, err := describe(used[0].key, indexes)
	if err != nil {
		return err
	}

	type request struct {
		Desc      string   `json:"desc"`
		Range     []uint32 `json:"range,omitempty"`
		Timestamp int64    `json:"timestamp"` // the rescan begins two hours before
	}

	requests := make([]request, len(descriptors))
	for i, d := range descriptors {
		requests[i] = request{Desc: d.Text, Timestamp: since.Unix()}
		if d.Ranged {
			requests[i].Range = []uint32{0, d.Last}
		}
	}

	return json.NewEncoder(to).Encode(requests)
}

func writePaths(keys *hdkey.Signer, used []usedKey, to io.Writer) error {
	slices.SortFunc(used, func(a, b usedKey) int { return cmp.Compare(a.key.Index, b.key.Index) })

	for _, u := range used {
		path, err := keys.Path(u.key)
		if err != nil {
			return err
		}

		fmt.Fprintln(to, path, u.address)
	}

	return nil
}
