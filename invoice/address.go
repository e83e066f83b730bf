package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// AddressKind is the purpose of an address of ours.
type AddressKind string

// The kinds. A wallet address is a master wallet: transfers to it are not payments.
const (
	ForOption  AddressKind = "option"
	ForDeposit AddressKind = "deposit"
	ForWallet  AddressKind = "wallet"
)

// Address is an address of ours that is watched for good. (Space, Address) is unique: it has one owner on
// all networks of its family and mode.
type Address struct {
	Space   chain.Space
	Address chain.Address
	Kind    AddressKind
	Owner   event.Owner
	// InvoiceID and OptionID, or DepositAddressID, are the object that it belongs to.
	InvoiceID, OptionID, DepositAddressID string
	// Network is the network it was made for.
	Network   string
	Key       chain.KeyRef
	CreatedAt time.Time
	// CheckedAt is the time of the newest block at which its balances were compared with the records.
	CheckedAt time.Time
	// NextCheck is when they are compared again; zero for wallets, whose balances are never compared.
	NextCheck time.Time
	// Urgent addresses wait for money and are compared before the others.
	Urgent bool
	// MAC authenticates the owner of the address; wallets have none. Write access to the database does not
	// suffice to make it.
	MAC []byte
}

// DepositStatus is whether a deposit address is handed out.
type DepositStatus string // spec D7.3

// The statuses of decisions part 7. A disabled address is still watched and credited.
const (
	Active   DepositStatus = "active"
	Disabled DepositStatus = "disabled"
)

// DepositAddress is a reusable address, usually one per customer of the merchant.
type DepositAddress struct {
	ID            string
	Owner         event.Owner
	Name          string
	Network       string
	Address       chain.Address
	Key           chain.KeyRef
	Status        DepositStatus
	Metadata      map[string]string
	LastPaymentAt time.Time
	CreatedAt     time.Time
	Sequence      int64
	Version       int64
}

// TokenAccount is where an address holds one token.
type TokenAccount struct {
	Asset        string        `json:"asset"`
	TokenAccount chain.Address `json:"token_account"`
}
