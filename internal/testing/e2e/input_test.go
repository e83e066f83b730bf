package e2e

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// Bad input is refused with a sentence that names what is wrong, and nothing is stored for it.
func TestBadInput(t *testing.T) {
	t.Parallel()

	c := sim.New(sim.Config{})
	s := start(t, c, string(c.NewAddress()))
	good := `{"price":{"currency":"USD","amount":"10"},"options":[{"asset":"SIM","network":"simnet"}]}`

	amount79 := strings.Repeat("9", 79)
	for name, c := range map[string]struct {
		key, body, code, param string
		status                 int
	}{
		"no key":    {"", good, "", "", http.StatusUnauthorized},
		"wrong key": {s.key[:len(s.key)-1] + "!", good, "api_key_invalid", "", http.StatusUnauthorized},
		"unknown key": {
			"pay_test_sk_" + strings.Repeat("A", 43),
			good,
			"api_key_invalid",
			"",
			http.StatusUnauthorized,
		},
		"malformed body": {s.key, `{"price":`, "", "", http.StatusBadRequest},
		"trailing data":  {s.key, good + "{}", "", "", http.StatusBadRequest},
		"unknown field": {
			s.key,
			`{"pricee":{"currency":"USD","amount":"10"}}`,
			"parameter_unknown",
			"pricee",
			http.StatusBadRequest,
		},
		"field in upper case": {
			s.key,
			`{"PRICE":{"currency":"USD","amount":"10"}}`,
			"parameter_unknown",
			"PRICE",
			http.StatusBadRequest,
		},
		"duplicate key": {
			s.key,
			`{"order_id":"a","order_id":"b","price":{"currency":"USD","amount":"10"}}`,
			"",
			"order_id",
			http.StatusBadRequest,
		},
		"amount of 79 digits": {
			s.key,
			`{"options":[{"asset":"SIM","network":"simnet","amount":"` + amount79 + `"}]}`,
			"",
			"options[0].amount",
			0,
		},
		"negative price": {s.key, `{"price":{"currency":"USD","amount":"-10"}}`, "", "price.amount", 0},
		"unknown currency": {
			s.key,
			`{"price":{"currency":"XXX","amount":"10"},"options":[{"asset":"SIM","network":"simnet"}]}`,
			"",
			"price.currency",
			0,
		},
		"unknown asset": {
			s.key,
			`{"price":{"currency":"USD","amount":"10"},"options":[{"asset":"DOGE","network":"simnet"}]}`,
			"asset_not_enabled",
			"",
			0,
		},
	} {
		status, body := s.do("POST", "/v1/invoices", c.key, c.body)

		var e struct {
			Error struct {
				Type, Code, Message, Param string
				RequestID                  string `json:"request_id"`
			} `json:"error"`
		}
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%s: %d %s: %v", name, status, body, err)
			continue
		}

		wrongStatus := status != c.status &&
			(c.status != 0 || status != http.StatusBadRequest && status != http.StatusUnprocessableEntity)
		if wrongStatus || (c.code != "" && e.Error.Code != c.code) ||
			(c.param != "" && e.Error.Param != c.param) ||
			e.Error.Message == "" ||
			e.Error.Type == "" ||
			e.Error.RequestID == "" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}

	var page struct {
		Data []invoiceView `json:"data"`
	}
	s.call("GET", "/v1/invoices", nil, &page)

	if len(page.Data) != 0 {
		t.Fatalf("%d invoices were stored for bad input", len(page.Data))
	}

	s.order("10", "SIM", "simnet")
}

// A node that is not there or not the network it should be is said so, by the address alone, and
// nothing is read from it.
func TestWrongNode(t *testing.T) {
	t.Parallel()

	const secret = "an-api-key-in-the-path"

	dead, err := evm.New(evm.Config{Network: evm.Local(31337), RPC: "http://127.0.0.1:1/" + secret})
	if err != nil {
		t.Fatal(err)
	}

	if err := dead.(chain.Checker).Check(
		t.Context(),
	); !errors.Is(err, fault.Unavailable) || strings.Contains(err.Error(), secret) ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a dead node: %v", err)
	}

	if testing.Short() {
		t.Skip("the rest needs anvil; run without -short")
	}

	node := testenv.Anvil(t, testenv.AnvilOptions{ChainID: 4242})

	other, err := evm.New(evm.Config{Network: evm.Local(31337), RPC: node.URL})
	if err != nil {
		t.Fatal(err)
	}

	for what, ask := range map[string]func() error{
		"Check": func() error { return other.(chain.Checker).Check(t.Context()) },
		"Head":  func() error { _, err := other.Head(t.Context()); return err },
	} {
		if err := ask(); !errors.Is(err, fault.Stopped) || !strings.Contains(err.Error(), "4242") ||
			!strings.Contains(err.Error(), "31337") {
			t.Errorf("%s of a node with another chain id: %v", what, err)
		}
	}
}

// Nothing secret reaches logs, error bodies or the database file.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()

	c := sim.New(sim.Config{})
	s := start(t, c, string(c.NewAddress()))

	var endpoint struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	s.call(
		"POST", "/v1/webhook_endpoints",
		map[string]any{"url": "http://127.0.0.1:1/hook", "events": []string{"*"}}, &endpoint,
	)

	var rotated struct {
		Secret string `json:"secret"`
	}
	s.call("POST", "/v1/webhook_endpoints/"+endpoint.ID+"/rotate_secret", map[string]any{}, &rotated)

	_, published, err := s.engine.Accounts.CreateKey(
		t.Context(), account.KeyParams{AccountID: s.account.ID, Publishable: true},
	)
	if err != nil {
		t.Fatal(err)
	}

	inv := s.order("10", "SIM", "simnet")
	c.Pay(inv.Options[0].Address, "SIM", amount(t, inv.Options[0].AmountDue))
	eventually(t, "the invoice is paid and released", func() (bool, string) {
		c.Mine(1)
		s.engine.Wake()

		var page struct {
			Data []paymentView `json:"data"`
		}
		s.call("GET", "/v1/invoices/"+inv.ID+"/payments", nil, &page)

		return len(page.Data) == 1 && page.Data[0].Settlement != nil &&
			page.Data[0].Settlement.Status == "released", "not released"
	})

	var said bytes.Buffer

	for _, req := range [][3]string{
		{"GET", "/v1/invoices", s.key + "x"},
		{"POST", "/v1/invoices", s.key},
		{"GET", "/v1/nothing", s.key},
		{"POST", "/v1/payouts", published},
		{"GET", "/v1/invoices?limit=1000", s.key},
		{"GET", "/v1/invoices/no-such-invoice", s.key},
	} {
		_, body := s.do(req[0], req[1], req[2], "")
		said.Write(body)
	}

	said.WriteString(s.logs.String())

	secrets := map[string]string{
		"API key":            s.key,
		"publishable key":    published,
		"signing secret":     endpoint.Secret,
		"new signing secret": rotated.Secret,
		"mnemonic":           mnemonic,
	}
	for what, key := range privateKeys(t) {
		secrets[what], secrets[what+" in hex"] = string(key), hex.EncodeToString(key)
	}

	look := func(where string, text []byte) {
		for what, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("the %s is in %s", what, where)
			}
		}

		if bytes.Contains(text, []byte("whsec_")) {
			t.Errorf("a signing secret is in %s", where)
		}

		if i := bytes.Index(text, []byte("wave sausage")); i >= 0 {
			t.Errorf("words of the mnemonic are in %s", where)
		}
	}
	look("logs and error bodies", said.Bytes())

	files := 0

	err = filepath.WalkDir(filepath.Dir(s.dbPath), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		b, err := os.ReadFile(path)
		files++

		look(filepath.Base(path), b)

		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files of the database were read: %v", files, err)
	}
}

// privateKeys returns the seed and the first private keys of the simulated network, derived here by
// BIP-39 and BIP-32.
func privateKeys(t *testing.T) map[string][]byte {
	t.Helper()

	seed, err := pbkdf2.Key(sha512.New, mnemonic, []byte("mnemonic"), 2048, 64)
	if err != nil {
		t.Fatal(err)
	}

	signer, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	out := map[string][]byte{"seed": seed}
	for what, account := range map[string]uint32{"deposit key": 1, "master key": 3} {
		key, err := hdkeychain.NewMaster(seed, &chaincfg.MainNetParams)
		if err != nil {
			t.Fatal(err)
		}

		const hard = hdkeychain.HardenedKeyStart
		for _, step := range []uint32{44 + hard, 1 + hard, account + hard, 0, 0} {
			if key, err = key.Derive(step); err != nil {
				t.Fatal(err)
			}
		}

		private, err := key.ECPrivKey()
		if err != nil {
			t.Fatal(err)
		}

		out[what] = private.Serialize()
		role := map[string]chain.Role{"deposit key": chain.RoleDeposit, "master key": chain.RoleMaster}[what]

		used, err := signer.PublicKey(t.Context(), chain.KeyRef{Family: chain.Sim, Role: role})
		if err != nil || !bytes.Equal(used.Bytes, private.PubKey().SerializeCompressed()) {
			t.Fatalf("the %s derived here is not the one the service uses (%v)", what, err)
		}
	}

	return out
}
