package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// badFile breaks each rule; it lies in testdata, where the rules do not look.
//
//go:embed testdata/bad.txt
var badFile string

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEachRuleFindsItsCase(t *testing.T) {
	long := "var wide = 1" + strings.Repeat(" + 1", maxColumns/4) + "\n" +
		"var message = `" + strings.Repeat("x", maxColumns) + "`\n"
	findings, err := inspectFile("pkg/bad.go", []byte(badFile+long))
	if err != nil {
		t.Fatal(err)
	}
	counts := count(findings)
	for rule, want := range map[string]int{ruleColumns: 1, ruleFuncName: 1, ruleTestName: 1, rulePronoun: 2, ruleWord: 2} {
		if got := counts[key{rule, "pkg"}]; got != want {
			t.Errorf("rule %s: %d findings, want %d: %v", rule, got, want, findings)
		}
	}
}

func TestVagueCommentsAreFound(t *testing.T) {
	for comment, want := range map[string]int{
		"// Status is what\n// came of it.":                    1,
		"// Interval is 60s, which it is when unset.":          1,
		"// Spec is what a member shall hold.":                 1,
		"// The Works are made anew.":                          1,
		"// Facts are what a plan knows.":                      1,
		"// What is released is how it was.":                   1,
		"// Interval is the time between checks. Default: 60s": 0,
	} {
		source := "package v1\n\n" + comment + "\nvar field int\n"
		for path, want := range map[string]int{"api/work/v1/a.go": want, "internal/core/release/a.go": want,
			"internal/core/object/a.go": 0} {
			findings, err := inspectFile(path, []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			if got := count(findings)[key{ruleVague, filepath.Dir(path)}]; got != want {
				t.Errorf("%s in %s: %d findings, want %d", comment, path, got, want)
			}
		}
	}
}

func TestFindingsAboveTheLimitFail(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.go", badFile)
	limits := filepath.Join(dir, "limits.txt")
	if err := run(dir, limits, true); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, limits, false); err != nil {
		t.Errorf("the numbers of today are refused: %v", err)
	}
	write(t, dir, "worse.go", "package bad\n\nfunc told() {}\n")
	if err := run(dir, limits, false); err == nil {
		t.Error("one more bare function name is accepted")
	}
}

func TestFewerFindingsThanTheLimitPass(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "good.go", "package good\n\nfunc pendingWrites() {}\n")
	write(t, dir, "limits.txt", "func-name . 3\n")
	if err := run(dir, filepath.Join(dir, "limits.txt"), false); err != nil {
		t.Error(err)
	}
}
