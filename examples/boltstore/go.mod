module github.com/seed-8ee7f392/payments/examples/boltstore

go 1.26.0

require (
	github.com/seed-8ee7f392/payments v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	code.dny.dev/ssrf v0.3.0 // indirect
	github.com/btcsuite/btcd/btcec/v2 v2.5.0 // indirect
	github.com/btcsuite/btcd/chainhash/v2 v2.0.0 // indirect
	github.com/decred/dcrd/crypto/blake256 v1.1.0 // indirect
	github.com/decred/dcrd/dcrec/secp256k1/v4 v4.4.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/holiman/uint256 v1.3.2 // indirect
	github.com/shopspring/decimal v1.6.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/seed-8ee7f392/payments => ../..
