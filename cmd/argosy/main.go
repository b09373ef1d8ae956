// Command argosy is the hub, its command line and its simulated members in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/argosy-io/argosy/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly end; a second one, by then back to its default, does not.
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, os.Args, os.Stdout, os.Stderr)
}
