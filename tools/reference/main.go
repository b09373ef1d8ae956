// Command reference writes the pages of docs/reference from the source: names of labels and annotations, API fields
// that differ from Karmada, conditions, and events. The texts are the doc comments of constants.
//
// A constant, or a block of constants, is listed because of a directive in its doc comment:
//
//	//reference:condition OBJECTS
//	//reference:reason CONDITION of OBJECTS
//	//reference:event TYPE on OBJECTS
//	//reference:none
//
// A constant may have several directives. They replace those of its block. The doc comment of a listed constant is
// "Name: meaning.".
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes all pages below root. `make check` fails if that changes one.
func run(root string) error {
	source, err := scan(root, "api", "internal")
	if err != nil {
		return err
	}
	pages, err := render(root, source)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "docs", "reference")
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(pages[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
