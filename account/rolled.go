package account

import (
	"context"

	"github.com/seed-8ee7f392/payments/fault"
)

// KeysOfHolder returns the ids of all keys in the given key's chain of replacements, itself included. One
// holder has them all, because each was given to the holder of the key that it replaced.
//
// Errors: fault.Unavailable, code api_key_damaged, if a row between them is missing or was changed outside
// this service.
func (s *Service) KeysOfHolder(ctx context.Context, key Key) ([]string, error) {
	keys, err := s.db.Keys(ctx, key.Owner.AccountID)
	if err != nil {
		return nil, err
	}

	byID := make(map[string]Key, len(keys))
	for _, k := range keys {
		byID[k.ID] = k
	}

	first, err := s.firstKey(byID, key.ID)
	if err != nil {
		return nil, err
	}

	var same []string

	for _, k := range keys {
		other, err := s.firstKey(byID, k.ID)
		if err != nil {
			return nil, err
		}

		if other == first {
			same = append(same, k.ID)
		}
	}

	return same, nil
}

// firstKey returns the id of the first key in a key's chain of replacements.
func (s *Service) firstKey(byID map[string]Key, id string) (string, error) {
	for range len(byID) {
		k, ok := byID[id]
		if !ok || s.checkKey(k) != nil {
			break
		}

		if k.RolledFrom == "" {
			return id, nil
		}

		id = k.RolledFrom
	}

	return "", fault.New(
		fault.Unavailable, "api_key_damaged",
		"the API key %s is missing or was changed outside this service: restore it", id,
	)
}
