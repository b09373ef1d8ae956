package hubcli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// hostile has characters that move the cursor, ring the bell, change the direction of writing and start a line.
const hostile = "a\x1b[2Jb\ac\rd\u202ee\u009bf\x7fg"

// Names and messages come from tenants and members.
func TestNoOutputControlsATerminal(t *testing.T) {
	value := map[string]string{"name": hostile + "\nfake 😀 \U000e0001"}
	for name, write := range map[string]func(out *bytes.Buffer) error{
		"json": func(out *bytes.Buffer) error { return WriteAs(out, "json", value) },
		"yaml": func(out *bytes.Buffer) error { return WriteAs(out, "yaml", value) },
		"an error": func(out *bytes.Buffer) error {
			out.WriteString(Harmless(hostile + "\nthe next line"))
			return nil
		},
		"a table": func(out *bytes.Buffer) error {
			table := TextTable("Name", "Reason")
			AddRow(table, hostile, hostile+"\nthe end of the reason")
			return PrintTable(out, table, printers.PrintOptions{})
		},
		"plain": func(out *bytes.Buffer) error {
			p := &Painter{Out: out}
			defer p.Flush()
			_, err := p.Write([]byte("x " + hostile + "\ny " + hostile))
			return err
		},
		"a rune in two pieces": func(out *bytes.Buffer) error {
			p := &Painter{Out: out}
			defer p.Flush()
			for _, b := range []byte("é\u202eé") {
				if _, err := p.Write([]byte{b}); err != nil {
					return err
				}
			}
			return nil
		},
		"yaml with tabs and wide spaces": func(out *bytes.Buffer) error {
			return WriteAs(out, "yaml", map[string]string{"name": "all:\n\tgo build\n多　集群\n"})
		},
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out.String(), func(r rune) bool {
			return !strings.ContainsRune("\n\t\u3000", r) && !unicode.IsPrint(r)
		}) {
			t.Errorf("%s: %q", name, &out)
		}
		switch got := map[string]string{}; name {
		case "json":
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["name"] != value["name"] {
				t.Errorf("it reads %q, %v, from %s", got, err, &out)
			}
		case "yaml":
			if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got["name"] != value["name"] {
				t.Errorf("it reads %q, %v, from %s", got, err, &out)
			}
		case "yaml with tabs and wide spaces":
			if !strings.HasPrefix(out.String(), "name: ") || !strings.Contains(out.String(), "多　集群") {
				t.Errorf("it is written in the style of JSON: %s", &out)
			}
		case "an error":
			if !strings.HasSuffix(out.String(), "\nthe next line") {
				t.Errorf("it joins the lines: %q", &out)
			}
		case "a table":
			if !strings.Contains(out.String(), "the end of the reason") || strings.Count(out.String(), "\n") != 2 {
				t.Errorf("a line break cuts the row: %q", &out)
			}
		case "a rune in two pieces":
			if out.String() != "é é" {
				t.Errorf("it prints %q", &out)
			}
		}
	}
	var painted bytes.Buffer
	p := &Painter{Out: &painted, On: true}
	if _, err := p.Write([]byte("Warning: " + hostile + "\n")); err != nil ||
		strings.Count(painted.String(), "\x1b") != 2 || strings.ContainsAny(painted.String(), "\a\r\u202e\u009b") {
		t.Errorf("in color: %q, %v", &painted, err)
	}
}
