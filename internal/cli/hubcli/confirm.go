package hubcli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// ConfirmationInput returns the terminal that a user can answer on; nil if there is none.
func ConfirmationInput(cmd *cobra.Command) io.Reader {
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return in
	}
	return nil
}

// Confirm asks a question that a user confirms with yes. Any other answer is an error.
func Confirm(out io.Writer, in io.Reader, question string) error {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed")
}

// ConfirmOrYes is confirm for a command with the flag --yes that was not set. Without a terminal it is an error.
func ConfirmOrYes(out io.Writer, in io.Reader, verb, question string) error {
	if in == nil {
		return fmt.Errorf("%s asks for confirmation, and there is no terminal: add --yes", verb)
	}
	return Confirm(out, in, question)
}
