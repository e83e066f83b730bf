// Command server is a complete payment service: PostgreSQL, real networks, keys in a process of their own, TLS,
// metrics, and an orderly end. All configuration is in the environment, or in a YAML file that SETTINGS_FILE names;
// README.md lists it.
//
//	server migrate          makes the tables
//	server signer           holds the keys, and serves them on a Unix socket
//	server                  serves the API and the checkout page, and works
//	server merchant NAME    makes a merchant's account, and prints its test key; -live makes a live one
//	server audit            compares the records with the networks; it fails when they differ
//	server recovery         prints what another wallet needs to find the money; see docs/recovery.md
//	server unfreeze NETWORK ends the freeze that a new EPOCH began, once a person has compared the master wallets
//	server resume NETWORK   has a stopped network read again, once a person knows why it stopped
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	settings, err := readSettings(os.Getenv)
	if err == nil {
		err = command(ctx, log, settings, os.Args[1:])
	}

	if err != nil {
		log.Error("the command failed", "error", err)
		os.Exit(1)
	}
}

// command runs one command of the program.
func command(ctx context.Context, log *slog.Logger, settings settings, args []string) error {
	if len(args) == 0 {
		args = []string{"serve"}
	}

	name, rest := args[0], args[1:]

	takesArguments := name == "merchant" || name == "unfreeze" || name == "resume" || name == "recovery"
	if len(rest) > 0 && !takesArguments {
		return fmt.Errorf("%s takes no arguments, and was given %q: leave them out", name, rest)
	}

	switch name {
	case "migrate":
		return migrate(ctx, settings)

	case "signer":
		return runSigner(ctx, log, settings)

	case "serve":
		return serve(ctx, log, settings)

	case "merchant":
		flags := flag.NewFlagSet(name, flag.ContinueOnError)
		live := flags.Bool("live", false, "print a live key")

		if err := flags.Parse(rest); err != nil {
			return err
		}

		if flags.NArg() > 1 {
			return fmt.Errorf("merchant takes one name, and was given %q: quote it", flags.Args())
		}

		return createMerchant(ctx, log, settings, flags.Arg(0), *live)

	case "recovery":
		flags := flag.NewFlagSet(name, flag.ContinueOnError)
		private := flags.Bool("private", false, "print the private keys of Bitcoin in the descriptors")

		if err := flags.Parse(rest); err != nil {
			return err
		}

		return printRecovery(ctx, log, settings, *private, os.Stdout)

	case "audit":
		return runAudit(ctx, log, settings)

	case "unfreeze", "resume":
		return operate(ctx, log, settings, name, rest)

	default:
		return fmt.Errorf(
			"there is no command %q: use migrate, signer, serve, merchant, audit, recovery, unfreeze or resume",
			name,
		)
	}
}
