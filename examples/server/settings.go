package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
)

// settings are what the environment and the settings file say.
type settings struct {
	databaseURL string
	baseURL     string

	listen      string // of the API and the checkout page
	adminListen string // of health and metrics, for this machine or a private network
	cert, key   string // files; empty behind a proxy that ends TLS

	trustedProxies []netip.Prefix // whose X-Forwarded-For says where a request comes from

	secretKeyFile string
	epoch         uint64 // how often the records were restored from a backup

	signerSocket string
	mnemonicFile string                  // the signer's only
	largest      map[string]chain.Amount // of one payout, by symbol in base units; the signer's only

	networks     []string
	nodes        map[string][]string // URLs, by network slug
	feeAddresses map[string]string   // by network slug
	prices       map[string]string   // fixed ones, for test networks; empty: those of the markets

	webhookAllow []netip.Prefix
}

// maxEpoch is the highest payments.Config.Epoch.
const maxEpoch = 1024

// readSettings reads the environment and the file that it names. Values are never put into errors: they may hold
// passwords.
func readSettings(environment func(string) string) (settings, error) {
	env, err := withFile(environment)
	if err != nil {
		return settings{}, err
	}

	s := settings{
		databaseURL:   env("DATABASE_URL"),
		baseURL:       env("BASE_URL"),
		listen:        or(env("LISTEN"), ":8443"),
		adminListen:   or(env("ADMIN_LISTEN"), "127.0.0.1:9090"),
		cert:          env("TLS_CERT"),
		key:           env("TLS_KEY"),
		secretKeyFile: env("SECRET_KEY_FILE"),
		signerSocket:  or(env("SIGNER_SOCKET"), "/run/payments/signer.sock"),
		mnemonicFile:  env("MNEMONIC_FILE"),
		largest:       map[string]chain.Amount{},
		networks:      strings.Fields(env("NETWORKS")),
		nodes:         map[string][]string{},
		feeAddresses:  map[string]string{},
		prices:        map[string]string{},
	}

	for _, slug := range s.networks {
		name := variableName(slug)
		s.nodes[slug] = strings.Fields(env("NODES_" + name))

		if len(s.nodes[slug]) == 0 {
			return s, fmt.Errorf("NODES_%s is empty: it lists the URLs of the nodes of %s", name, slug)
		}

		if address := env("FEE_ADDRESS_" + name); address != "" {
			s.feeAddresses[slug] = address
		}
	}

	s.epoch, err = strconv.ParseUint(or(env("EPOCH"), "0"), 10, 64)
	if err != nil || s.epoch > maxEpoch {
		return s, fmt.Errorf("EPOCH counts the restores from a backup: set it to a number up to %d", maxEpoch)
	}

	err = s.readLists(env)

	return s, err
}

// readLists reads the variables that hold several words each.
func (s *settings) readLists(env func(string) string) error {
	for pair := range strings.FieldsSeq(env("PRICES")) {
		name, price, ok := strings.Cut(pair, "=")
		if !ok {
			return errors.New("PRICES has the form ETH/USD=2500 USDC/USD=1")
		}

		s.prices[name] = price
	}

	for pair := range strings.FieldsSeq(env("SIGNER_LARGEST")) {
		symbol, digits, _ := strings.Cut(pair, "=")

		amount, err := chain.ParseAmount(digits)
		if err != nil {
			return fmt.Errorf("SIGNER_LARGEST has the form USDC=5000000000, in base units: %w", err)
		}

		s.largest[symbol] = amount
	}

	var err error
	if s.webhookAllow, err = readRanges("WEBHOOK_ALLOW", env); err != nil {
		return err
	}

	s.trustedProxies, err = readRanges("TRUSTED_PROXIES", env)

	return err
}

// readRanges reads a variable that lists address ranges.
func readRanges(variable string, env func(string) string) (ranges []netip.Prefix, err error) {
	for text := range strings.FieldsSeq(env(variable)) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s lists address ranges, such as 10.0.0.0/8: %w", variable, err)
		}

		ranges = append(ranges, prefix)
	}

	return ranges, nil
}

// secretKey returns the key that seals secrets in the database: 32 bytes in base64.
func (s settings) secretKey() ([]byte, error) {
	text, err := readSecret(
		"SECRET_KEY_FILE", s.secretKeyFile, "32 random bytes in base64, made with openssl rand -base64 32",
	)
	if err != nil {
		return nil, err
	}

	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, errors.New(
			"SECRET_KEY_FILE holds no 32 bytes in base64: make one with openssl rand -base64 32",
		)
	}

	return key, nil
}

// readSecret reads a file that the variable names, which must be its owner's alone. holds says what belongs into it.
func readSecret(variable, path, holds string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%s is empty: set it to the path of a file that holds %s", variable, holds)
	}

	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w: it names a file that holds %s", variable, err, holds)
	}

	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: others may read the file: chmod 600 %s", variable, path)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w: give it to this process's user", variable, err)
	}

	return strings.TrimSpace(string(text)), nil
}

// variableName returns a network's slug as names of variables have it.
func variableName(slug string) string { return strings.ToUpper(strings.ReplaceAll(slug, "-", "_")) }

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}

	return value
}
