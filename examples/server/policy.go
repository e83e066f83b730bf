package main

import (
	"bytes"
	"context"
	"sync"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
)

const (
	// maxAccounts is of how many merchants the signer knows the master wallets. Raise it before there are more.
	maxAccounts = 10_000

	// epochSkip is how many numbers of accounts each new epoch leaves out.
	epochSkip = 1 << 20
)

// policy decides what is signed. It trusts nothing but the bytes, neither what the server calls a transaction nor whom
// it says to pay: somebody may have taken the server over.
//
// It bounds each payment, of the assets that have a limit. It does not bound how many there are, nor their fees, and
// the service's own wallets may pay each other anything.
type policy struct {
	keys    *hdkey.Signer // for public keys
	drivers map[string]payments.ChainDriver
	largest map[string]chain.Amount // of a payment to somebody else, by symbol in base units
	fees    map[string]string       // where the platform fee goes, by network
	epoch   uint64

	mu      sync.Mutex
	masters map[string]map[chain.Address]bool // the master wallets, by network
}

func newPolicy(keys *hdkey.Signer, drivers []payments.ChainDriver, s settings) *policy {
	p := &policy{
		keys:    keys,
		drivers: map[string]payments.ChainDriver{},
		largest: s.largest,
		fees:    s.feeAddresses,
		epoch:   s.epoch,
		masters: map[string]map[chain.Address]bool{},
	}
	for _, d := range drivers {
		p.drivers[d.Network().Slug] = d
	}

	return p
}

// check is an hdkey.Policy. It reads what the bytes pay, compares every digest, and refuses more than the limit of its
// asset to an address that is not the service's own.
func (p *policy) check(ctx context.Context, request chain.SignRequest) error {
	driver := p.drivers[request.Network]

	decoder, ok := driver.(chain.Decoder)
	if !ok {
		return chain.Refuse("network_unknown")
	}

	decoded, err := decoder.Decode(request.Unsigned)
	if err != nil || len(decoded.Digests) != len(request.Payloads) {
		return chain.Refuse("bytes_unreadable")
	}

	network := driver.Network()

	for i, payload := range request.Payloads {
		// The bytes of some networks do not say which one they are for: a live key does not sign a test network's.
		if payload.Key.Family != network.Family || payload.Key.Livemode != network.Livemode {
			return chain.Refuse("wrong_key")
		}

		if !bytes.Equal(payload.Data, decoded.Digests[i]) {
			return chain.Refuse("digest_differs")
		}
	}

	for _, output := range decoded.Outputs {
		asset, _ := network.AssetByID(output.AssetID)
		if limit, limited := p.largest[asset.Symbol]; !limited || !limit.Less(output.Amount) {
			continue
		}

		if ours, err := p.isOurs(ctx, driver, request.Payloads, output.To); err != nil {
			return err
		} else if !ours {
			return chain.Refuse("too_large")
		}
	}

	return nil
}

// isOurs reports whether an address is the platform's fee address, one that signs, or a master wallet.
func (p *policy) isOurs(
	ctx context.Context,
	driver payments.ChainDriver,
	payloads []chain.Payload,
	to chain.Address,
) (bool, error) {
	if text := p.fees[driver.Network().Slug]; text != "" {
		if fee, err := driver.ParseAddress(text); err != nil || fee == to {
			return err == nil, err
		}
	}

	signing := make([]chain.KeyRef, len(payloads))
	for i, payload := range payloads {
		signing[i] = payload.Key
	}

	own, err := p.addresses(ctx, driver, signing)
	if err != nil || own[to] {
		return err == nil, err
	}

	masters, err := p.masterWallets(ctx, driver)

	return masters[to], err
}

// masterWallets returns the master wallets of all merchants on a network. It derives them once.
func (p *policy) masterWallets(
	ctx context.Context,
	driver payments.ChainDriver,
) (map[chain.Address]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	network := driver.Network()
	if known, ok := p.masters[network.Slug]; ok {
		return known, nil
	}

	var keys []chain.KeyRef

	for epoch := range p.epoch + 1 {
		for n := range uint64(maxAccounts) {
			keys = append(keys, chain.KeyRef{
				Family:   network.Family,
				Livemode: network.Livemode,
				Role:     chain.RoleMaster,
				Index:    uint32(epoch*epochSkip + n),
			})
		}
	}

	masters, err := p.addresses(ctx, driver, keys)
	if err == nil {
		p.masters[network.Slug] = masters
	}

	return masters, err
}

// addresses returns the addresses of some keys.
func (p *policy) addresses(
	ctx context.Context,
	driver payments.ChainDriver,
	keys []chain.KeyRef,
) (map[chain.Address]bool, error) {
	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return nil, nil
	}

	public, err := p.keys.PublicKeys(ctx, keys)
	if err != nil {
		return nil, err
	}

	all := map[chain.Address]bool{}

	for _, key := range public {
		address, err := deriver.DeriveAddress(key)
		if err != nil {
			return nil, err
		}

		all[address] = true
	}

	return all, nil
}
