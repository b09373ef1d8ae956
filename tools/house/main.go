// Command house checks the rules of style that a program can see. Each rule has a limit per package, recorded in
// limits.txt: a package may have fewer findings than its limit, never more. `house --update` lowers the limits.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	limits := flag.String("limits", "limits.txt", "file with the accepted number of findings per rule and package")
	update := flag.Bool("update", false, "write the numbers of today into the file of limits")
	flag.Parse()
	if err := run(*root, *limits, *update); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks all packages below root against the limits, or records today's numbers as the limits.
func run(root, limitsFile string, update bool) error {
	findings, err := inspect(root)
	if err != nil {
		return err
	}
	if update {
		return os.WriteFile(limitsFile, formatLimits(count(findings)), 0o644)
	}
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		return err
	}
	limits, err := parseLimits(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", limitsFile, err)
	}
	exceeded := compare(findings, limits)
	for _, line := range exceeded {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(exceeded) > 0 {
		return errors.New("style: more findings than limits.txt accepts; fix the lines above")
	}
	return nil
}
