package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// decoding is a network whose bytes say what a test wants them to.
type decoding struct {
	payments.ChainDriver
	says chain.Decoded
}

func (d *decoding) Decode([]byte) (chain.Decoded, error) { return d.says, nil }

func (d *decoding) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	return d.ChainDriver.(chain.Deriver).DeriveAddress(key)
}

// What leaves the service counts against the limit, whatever the server calls it.
func TestPolicy(t *testing.T) {
	const fee = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"

	driver, err := evm.New(evm.Config{Network: evm.Local(31337), RPCs: []string{"http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}

	feeAddress, err := driver.ParseAddress(fee)
	if err != nil {
		t.Fatal(err)
	}

	keys, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	network := &decoding{ChainDriver: driver}
	local := network.Network()
	policy := newPolicy(keys, []payments.ChainDriver{network}, settings{
		largest:      map[string]chain.Amount{"ETH": chain.Units(10)},
		feeAddresses: map[string]string{"local": fee},
		epoch:        1,
	})

	key := func(role chain.Role, index uint32) chain.KeyRef {
		return chain.KeyRef{Family: local.Family, Livemode: local.Livemode, Role: role, Index: index}
	}
	addressOf := func(ref chain.KeyRef) chain.Address {
		public, err := keys.PublicKey(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}

		address, err := network.DeriveAddress(public)
		if err != nil {
			t.Fatal(err)
		}

		return address
	}
	master := func(index uint32) chain.Address { return addressOf(key(chain.RoleMaster, index)) }

	deposit, live := key(chain.RoleDeposit, 7), key(chain.RoleDeposit, 7)
	live.Livemode = !live.Livemode

	digest := []byte("what the bytes say is to be signed")
	signing := func(key chain.KeyRef, data []byte) []chain.Payload { return []chain.Payload{{Key: key, Data: data}} }
	right := signing(deposit, digest)
	stranger := chain.Address(testenv.WellKnownDevAccounts[5].Address)

	for name, c := range map[string]struct {
		network  string
		kind     string
		payloads []chain.Payload
		to       chain.Address
		amount   uint64
		refusal  string
	}{
		"a payout within the limit":    {"local", "payout", right, stranger, 10, ""},
		"a payout above the limit":     {"local", "payout", right, stranger, 11, "too_large"},
		"a sweep to somebody else":     {"local", "sweep", right, stranger, 11, "too_large"},
		"a sweep":                      {"local", "sweep", right, master(3), 11, ""},
		"a sweep to a later epoch's":   {"local", "sweep", right, master(1<<20 + 3), 11, ""},
		"a sweep to no epoch's":        {"local", "sweep", right, master(1 << 19), 11, "too_large"},
		"the platform's fee":           {"local", "fee", right, feeAddress, 11, ""},
		"to itself":                    {"local", "cancel", right, addressOf(deposit), 11, ""},
		"another digest":               {"local", "sweep", signing(deposit, nil), stranger, 1, "digest_differs"},
		"one digest more":              {"local", "sweep", append(right, right...), stranger, 1, "bytes_unreadable"},
		"a live key on a test network": {"local", "sweep", signing(live, digest), stranger, 1, "wrong_key"},
		"a network that is not served": {"base", "sweep", right, stranger, 1, "network_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			network.says = chain.Decoded{
				Outputs: []chain.Output{
					{To: c.to, AssetID: local.Assets[0].ID, Amount: chain.Units(c.amount)},
				},
				Digests: [][]byte{digest},
			}

			err := policy.check(t.Context(), chain.SignRequest{
				Network:  c.network,
				Payloads: c.payloads,
				Intent:   chain.Intent{Kind: c.kind},
			})

			refusal, _ := errors.AsType[*chain.Refusal](err)
			if refusal == nil && (err != nil || c.refusal != "") ||
				refusal != nil && refusal.Reason != c.refusal {
				t.Errorf("the policy answers %v, not %q", err, c.refusal)
			}
		})
	}
}

// TestRemoteSigner checks that keys, signatures and refusals arrive as the signer gave them.
func TestRemoteSigner(t *testing.T) {
	refusal := &chain.Refusal{Reason: "too_large"}

	keys, err := hdkey.New(
		testenv.WellKnownDevMnemonic, "",
		hdkey.WithPolicy(func(_ context.Context, request chain.SignRequest) error {
			if request.Intent.Kind == "payout" {
				return refusal
			}

			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}

	socket := filepath.Join(t.TempDir(), "s")

	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}

	server := &http.Server{Handler: signerHandler(keys)}
	go func() { _ = server.Serve(listener) }()

	defer server.Close()

	remote := newRemoteSigner(socket)
	key := chain.KeyRef{Family: chain.EVM, Role: chain.RoleDeposit, Index: 7}

	got, err := remote.PublicKey(t.Context(), key)
	want, _ := keys.PublicKey(t.Context(), key)

	if err != nil || got.Curve != want.Curve || string(got.Bytes) != string(want.Bytes) {
		t.Errorf("the public key is %v, %v, not %v", got, err, want)
	}

	request := chain.SignRequest{
		Network:  "local",
		Payloads: []chain.Payload{{Key: key, Data: make([]byte, 32)}},
		Intent:   chain.Intent{Kind: "sweep"},
	}

	signed, err := remote.Sign(t.Context(), request)
	if err != nil || len(signed) != 1 || len(signed[0]) != 65 {
		t.Errorf("the signatures are %x, %v", signed, err)
	}

	request.Intent.Kind = "payout"

	var seen *chain.Refusal
	if _, err := remote.Sign(t.Context(), request); !errors.As(err, &seen) || *seen != *refusal {
		t.Errorf("a refused signature is %v", err)
	}
}
