package redaction_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/kv"
	"github.com/seed-8ee7f392/payments/store/memory"
	mysqlstore "github.com/seed-8ee7f392/payments/store/mysql"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/redis"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
	"github.com/seed-8ee7f392/payments/webhook"
)

const secretMnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

// secretURL is where nothing listens.
const secretURL = "http://user:" + hiddenText + "@127.0.0.1:1/" + hiddenText

// made is a value that a constructor returned, given secrets.
type made struct {
	value any
	// format is set where the value keeps a secret: it must print itself.
	format bool
}

// constructors are the functions of docs/api.txt that return what a host keeps, by package and name.
var constructors = map[string]func(t *testing.T) made{
	"chain/evm.New": func(t *testing.T) made {
		return made{must(evm.New(evm.Config{Network: evm.Local(1), RPC: secretURL}))(t), true}
	},
	"chain/bitcoin.New": func(t *testing.T) made {
		return made{must(bitcoin.New(bitcoin.Config{Network: bitcoin.Regtest, RPC: secretURL}))(t), true}
	},
	"chain/solana.New": func(t *testing.T) made {
		return made{must(solana.New(solana.Config{Network: solana.Devnet, RPC: secretURL}))(t), true}
	},
	"chain/tron.New": func(t *testing.T) made {
		return made{must(tron.New(tron.Config{
			Network: tron.Nile,
			Nodes:   []tron.Node{{URL: secretURL}},
		}))(t), true}
	},
	"chain/sim.New":       func(*testing.T) made { return made{value: sim.New(sim.Config{})} },
	"chain/sim.NewSigner": func(*testing.T) made { return made{sim.NewSigner(1, nil), true} },
	"chain/hdkey.New": func(t *testing.T) made {
		return made{must(hdkey.New(secretMnemonic, hiddenText))(t), true}
	},
	"store/memory.New": func(*testing.T) made { return made{memory.New(), true} },
	"store/kv.Open": func(t *testing.T) made {
		return made{must(kv.Open(t.Context(), secretBackend{password: hiddenText}))(t), true}
	},
	"store/sqlite.New": func(t *testing.T) made {
		return made{sqlite.New(openSQL(t, "sqlite", "file:"+hiddenText)), true}
	},
	"store/sqlite.Open": func(t *testing.T) made {
		db := must(sqlite.Open(filepath.Join(t.TempDir(), hiddenText)))(t)
		t.Cleanup(func() { _ = db.Close() })

		return made{db, true}
	},
	"store/postgres.New": func(t *testing.T) made {
		return made{must(postgres.New(secretPostgres(t), postgres.Options{}))(t), true}
	},
	"store/sqlstore.New": func(t *testing.T) made {
		return made{
			any(must(postgres.New(secretPostgres(t), postgres.Options{}))(t).Store).(sqlstore.Store),
			true,
		}
	},
	"store/mysql.New": func(t *testing.T) made {
		c := mysql.NewConfig()
		c.User, c.Passwd, c.Net, c.Addr = "user", hiddenText, "tcp", "127.0.0.1:1"

		return made{must(mysqlstore.New(openSQL(t, "mysql", c.FormatDSN())))(t), true}
	},
	"store/redis.New":  func(t *testing.T) made { return made{secretRedis(t), true} },
	"store/redis.Open": func(t *testing.T) made { return made{secretRedis(t), true} },
	"webhook.NewReceiver": func(t *testing.T) made {
		return made{must(webhook.NewReceiver(webhook.ReceiverConfig{
			Secrets: []string{hiddenText},
			Handle:  func(context.Context, webhook.Notification) error { return nil },
		}))(t), true}
	},
	"payments.New":             func(t *testing.T) made { return made{secretEngine(t), true} },
	"httpapi.Handler":          func(t *testing.T) made { return made{value: httpapi.Handler(secretEngine(t), nil)} },
	"httpapi/checkout.Handler": func(t *testing.T) made { return made{value: checkout.Handler(secretEngine(t), nil)} },

	// The engine makes these with its secrets, and has them as fields.
	"account.New":    func(t *testing.T) made { return made{value: secretEngine(t).Accounts} },
	"invoice.New":    func(t *testing.T) made { return made{value: secretEngine(t).Invoices} },
	"payout.New":     func(t *testing.T) made { return made{value: secretEngine(t).Payouts} },
	"settlement.New": func(t *testing.T) made { return made{value: secretEngine(t).Settlements} },
	"webhook.New":    func(t *testing.T) made { return made{value: secretEngine(t).Webhooks} },
}

// withoutSecrets are the functions of such a name whose results hold none, with the reason.
var withoutSecrets = map[string]string{
	"account.GenerateKey":     "returns the secret as a text",
	"chain.NewRegistry":       "holds drivers, which print themselves",
	"chain/hdkey.NewMnemonic": "returns the secret as a text",
	"fault.New":               "an error",
	"invoice/rate.NewFixed":   "holds prices",
	"limits.Server":           "holds the host's handler",
	"paymentstest.New":        "a service of tests with a fixed key",
	"paymentstest.NewOn":      "a service of tests with a fixed key",
	"webhook.NewDelivery":     "a record",
}

// What every constructor returns prints no secret that it was given; what keeps one prints itself, so that no field
// that is added later shows one.
func TestWhatConstructorsReturnPrintsNoSecret(t *testing.T) {
	for name, construct := range constructors {
		t.Run(name, func(t *testing.T) {
			m := construct(t)

			if _, prints := m.value.(fmt.Formatter); m.format && !prints {
				t.Errorf("%T has no method Format", m.value)
			}

			for how, text := range printedValue(m.value) {
				if at := findSecret(text); at != "" || strings.Contains(text, secretMnemonic) {
					t.Errorf("%T printed by %s shows a secret as %s: %.300s", m.value, how, at, text)
				}
			}
		})
	}
}

func TestEveryConstructorIsPrinted(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/api.txt")
	if err != nil {
		t.Fatal(err)
	}

	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^pkg (\S+), func ((?:New|Open|Generate|Handler|Server)\w*)\(`).
		FindAllStringSubmatch(string(raw), -1) {
		listed = append(listed, m[1]+"."+m[2])
	}

	for _, name := range listed {
		if constructors[name] == nil && withoutSecrets[name] == "" {
			t.Errorf("%s is in docs/api.txt: print what it returns, or say why it holds no secret", name)
		}
	}

	for name := range constructors {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not in docs/api.txt", name)
		}
	}
}

// printedValue is printed for a value that is a pointer or an interface already.
func printedValue(v any) map[string]string {
	if at := reflect.ValueOf(v); at.Kind() == reflect.Pointer {
		return printed(v)
	}

	pointer := reflect.New(reflect.TypeOf(v))
	pointer.Elem().Set(reflect.ValueOf(v))

	return printed(pointer.Interface())
}

// must returns a function that returns the value, or fails the test for the error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		return v
	}
}

// secretBackend is the backend of a key-value engine that has a password.
type secretBackend struct {
	kv.Backend
	password string
}

func (secretBackend) Update(context.Context, func(kv.Writer) error) error { return nil }

func openSQL(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()

	db := must(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { _ = db.Close() })

	return db
}

func secretPostgres(t *testing.T) *sql.DB {
	t.Helper()
	return openSQL(t, "pgx", "postgres://user:"+hiddenText+"@127.0.0.1:1/db")
}

func secretRedis(t *testing.T) *redis.Shared {
	t.Helper()

	s := must(redis.Open("redis://user:"+hiddenText+"@127.0.0.1:1/0", redis.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })

	return s
}

// secretEngine returns an engine whose SecretKey is the secret.
func secretEngine(t *testing.T) *payments.Engine {
	t.Helper()

	prices := must(rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil))(t)

	return must(payments.New(payments.Config{
		Store:         memory.New(),
		Drivers:       []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:        sim.NewSigner(1, nil),
		Rates:         prices,
		BaseURL:       "https://pay.example.com",
		SecretKey:     []byte(hiddenText),
		OldSecretKeys: [][]byte{[]byte(hiddenText)},
		WebhookAllow:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:           slog.New(slog.DiscardHandler),
	}))(t)
}
