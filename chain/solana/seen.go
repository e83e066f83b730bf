package solana

import (
	"sync"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// seenAccounts remembers what was seen of accounts, by key. It says which histories are looked at first, and saves
// calls. Nothing is credited or left out for it.
type seenAccounts struct {
	mu       sync.Mutex
	accounts map[solanago.PublicKey]*seenAccount
}

// seenAccount is what was seen of an account last.
type seenAccount struct {
	address chain.Address

	// since is the slot since which every reading showed the same balance, in base units.
	balance, since uint64
	// signature is a transaction that left so much.
	signature string
	left      uint64

	// read is the signature up to which the history was read to its end, looked the slot at which, and held what the
	// account held then.
	read   string
	looked uint64
	held   uint64
	// wrong is the time of the block since which the history does not explain the balance; zero for none.
	wrong time.Time
	// touched is the slot of a transaction, read for another account, that names this one.
	touched uint64
	// backlog are the listed transactions after read that are left, newest first, and reaches how far they go back.
	backlog []signatureInfo
	reaches listState
}

const maxSeenAccounts = 1 << 20

func newSeenAccounts() *seenAccounts {
	return &seenAccounts{accounts: map[solanago.PublicKey]*seenAccount{}}
}

// of returns the entry of an account. The caller holds the lock.
func (s *seenAccounts) of(key solanago.PublicKey) *seenAccount {
	seen := s.accounts[key]
	if seen == nil {
		if len(s.accounts) >= maxSeenAccounts {
			clear(s.accounts)
		}

		seen = &seenAccount{}
		s.accounts[key] = seen
	}

	return seen
}

// change changes the entry of an account.
func (s *seenAccounts) change(key solanago.PublicKey, change func(*seenAccount)) {
	s.mu.Lock()
	defer s.mu.Unlock()

	change(s.of(key))
}

// get returns the entry of an account.
func (s *seenAccounts) get(key solanago.PublicKey) seenAccount {
	s.mu.Lock()
	defer s.mu.Unlock()

	return *s.of(key)
}

// putBalance remembers a balance, and returns the slot since which it is the same.
func (s *seenAccounts) putBalance(key solanago.PublicKey, balance, slot uint64) (since uint64) {
	s.change(key, func(seen *seenAccount) {
		if seen.since == 0 || seen.balance != balance {
			seen.balance, seen.since = balance, slot
		}

		since = seen.since
	})

	return since
}

// leftBy returns what a transaction left in an account, if that is remembered.
func (s *seenAccounts) leftBy(key solanago.PublicKey, signature string) (left uint64, ok bool) {
	seen := s.get(key)

	return seen.left, seen.signature == signature && signature != ""
}

func (s *seenAccounts) putLeft(account holdingAccount, signature string, left uint64) {
	s.change(account.key, func(seen *seenAccount) { seen.signature, seen.left = signature, left })
}

// touch has the histories of known accounts looked at that a transaction names.
func (s *seenAccounts) touch(keys []solanago.PublicKey, slot uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, key := range keys {
		if seen := s.accounts[key]; seen != nil {
			seen.touched = max(seen.touched, slot)
		}
	}
}

// notLooked returns the addresses of those of some accounts whose histories were not looked at since they were touched.
func (s *seenAccounts) notLooked(keys map[solanago.PublicKey]bool) (addresses []chain.Address) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for key := range keys {
		seen := s.accounts[key]
		if seen != nil && seen.address != "" && seen.touched > seen.looked {
			addresses = append(addresses, seen.address)
		}
	}

	return addresses
}
