package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// document is one customization in a file, or a fragment with only its operations.
type document struct {
	line     int
	name     string
	target   configv1alpha1.CustomizationTarget
	fragment bool
	scripts  []scriptText
	paths    []pathText
	problems []Finding
}

// scriptText is a script with its position.
type scriptText struct {
	operation script.Operation
	// spelled is the operation's field as written in the file.
	spelled string
	// text is the original text: for a folded scalar, the lines before YAML joins them. value is the result of YAML.
	text, value string
	// first is the line in the file of the first line of text. For a script in one line of YAML all lines have that
	// number.
	first  int
	single bool
	folded bool
}

func (s scriptText) field() string { return "spec.customizations." + s.spelled + ".luaScript" }

func (s scriptText) fileLine(line int) int {
	if s.single {
		return s.first
	}
	return s.first + line - 1
}

// pathText is an operation with a path instead of a script.
type pathText struct {
	operation script.Operation
	field     string
	value     string
	line      int
}

type yamlError struct {
	line    int
	message string
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parseFile finds the customizations in a file. broken is the position of a YAML error, after which nothing is read.
func parseFile(text []byte) (found []*document, broken *yamlError) {
	lines := strings.Split(string(text), "\n")
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			e := &yamlError{line: 1, message: err.Error()}
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				e.message = m[2]
				if n, err := strconv.Atoi(m[1]); err == nil {
					e.line = n
				}
			}
			return found, e
		}
		if node.Kind != yaml.DocumentNode || len(node.Content) == 0 {
			continue
		}
		root := node.Content[0]
		objects := []*yaml.Node{root}
		if items := get(root, "items"); items != nil && items.Kind == yaml.SequenceNode {
			objects = items.Content
		}
		for _, object := range objects {
			if d := read(object, lines); d != nil {
				found = append(found, d)
			}
		}
	}
}

// get returns the value of a key of a mapping; nil if there is none.
func get(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if node == nil || node.Kind != yaml.MappingNode {
			return nil
		}
		var inner *yaml.Node
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				inner = node.Content[i+1]
			}
		}
		node = inner
		if node != nil && node.Kind == yaml.AliasNode {
			node = node.Alias
		}
	}
	return node
}

func value(node *yaml.Node, keys ...string) string {
	if n := get(node, keys...); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// read returns the customization in an object; nil for other objects.
func read(object *yaml.Node, lines []string) *document {
	if object.Kind != yaml.MappingNode {
		return nil
	}
	d := &document{line: object.Line}
	rules := object
	switch {
	case value(object, "kind") == "ResourceInterpreterCustomization":
		d.name = value(object, "metadata", "name")
		d.target.APIVersion = value(object, "spec", "target", "apiVersion")
		d.target.Kind = value(object, "spec", "target", "kind")
		if t := get(object, "spec", "target"); t != nil {
			d.line = t.Line
		}
		rules = get(object, "spec", "customizations")
		if rules == nil {
			d.problems = append(d.problems, Finding{Line: d.line, Severity: Error, Rule: Incomplete,
				Field:   "spec.customizations",
				Message: "there are no operations", Fix: "add at least one of " + fieldNames()})
			return d
		}
	case isFragment(object):
		d.fragment = true
	default:
		return nil
	}
	if rules.Kind != yaml.MappingNode {
		d.problems = append(d.problems, Finding{Line: rules.Line, Severity: Error, Rule: Incomplete,
			Field:   "spec.customizations",
			Message: "the operations are not a mapping", Fix: "add at least one of " + fieldNames()})
		return d
	}
	seen := map[string]string{}
	for i := 0; i+1 < len(rules.Content); i += 2 {
		d.rule(rules.Content[i], rules.Content[i+1], seen, lines)
	}
	return d
}

// isFragment reports whether all keys are operations.
func isFragment(object *yaml.Node) bool {
	for i := 0; i+1 < len(object.Content); i += 2 {
		if _, ok := operationOf(object.Content[i].Value); !ok || object.Content[i+1].Kind != yaml.MappingNode {
			return false
		}
	}
	return len(object.Content) > 0
}

func fieldNames() string {
	names := make([]string, len(script.Operations))
	for i, o := range script.Operations {
		names[i] = o.Field
	}
	return strings.Join(names, ", ")
}

// rule reads one field of spec.customizations.
func (d *document) rule(key, rule *yaml.Node, seen map[string]string, lines []string) {
	field := "spec.customizations." + key.Value
	problem := func(line int, severity Severity, r Rule, message, fix string) {
		d.problems = append(d.problems, Finding{Line: line, Severity: severity, Rule: r, Field: field, Message: message,
			Fix: fix})
	}
	o, ok := operationOf(key.Value)
	if !ok {
		problem(key.Line, Error, Spelling, fmt.Sprintf("%s is not an operation: it is rejected, or dropped and never run",
			key.Value), "use one of "+fieldNames())
		return
	}
	if key.Value != o.Field {
		problem(key.Line, Warning, Spelling,
			fmt.Sprintf("the operation is called %s; Karmada rejects %s, or drops it so that the script never runs", o.Field,
				key.Value),
			"rename "+key.Value+" to "+o.Field)
	}
	if other, ok := seen[o.Field]; ok {
		problem(key.Line, Error, Spelling, fmt.Sprintf("%s duplicates %s", key.Value, other), "keep one of them")
	}
	seen[o.Field] = key.Value

	complete := false
	for i := 0; rule.Kind == yaml.MappingNode && i+1 < len(rule.Content); i += 2 {
		name, v := rule.Content[i].Value, rule.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		switch name {
		case "luaScript":
			if v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
				continue
			}
			complete = true
			d.scripts = append(d.scripts, scriptOf(o, key.Value, v, lines))
		case "jsonPath", "jsonPaths":
			for _, p := range scalars(v) {
				complete = true
				d.paths = append(d.paths, pathText{operation: o, field: field + "." + name, value: p.Value, line: p.Line})
			}
		case "expected":
		default:
			problem(rule.Content[i].Line, Error, Spelling, fmt.Sprintf("%s is not a field of an operation", name),
				"use luaScript, or jsonPath if the operation only reads or writes a field")
		}
	}
	if !complete {
		problem(key.Line, Error, Incomplete, "there is no script", "set luaScript, with function "+o.Signature())
	}
}

// scalars returns the scalars in a node at any depth.
func scalars(node *yaml.Node) []*yaml.Node {
	switch node.Kind {
	case yaml.ScalarNode:
		return []*yaml.Node{node}
	case yaml.MappingNode:
		var all []*yaml.Node
		for i := 1; i < len(node.Content); i += 2 {
			all = append(all, scalars(node.Content[i])...)
		}
		return all
	default:
		var all []*yaml.Node
		for _, n := range node.Content {
			all = append(all, scalars(n)...)
		}
		return all
	}
}

// scriptOf returns the script in a scalar.
func scriptOf(o script.Operation, spelled string, node *yaml.Node, lines []string) scriptText {
	s := scriptText{operation: o, spelled: spelled, text: node.Value, value: node.Value, first: node.Line, single: true}
	switch {
	case node.Style&yaml.LiteralStyle != 0:
		s.first, s.single = node.Line+1, false
	case node.Style&yaml.FoldedStyle != 0:
		s.first, s.single, s.folded = node.Line+1, false, true
		s.text = unfolded(lines, node.Line)
	}
	return s
}

// unfolded returns the original lines of a block scalar. header is its first line, from 1.
func unfolded(lines []string, header int) string {
	rest := lines[min(header, len(lines)):]
	indent := -1
	var block []string
	for _, line := range rest {
		trimmed := strings.TrimLeft(line, " ")
		if strings.TrimSpace(line) == "" {
			block = append(block, "")
			continue
		}
		depth := len(line) - len(trimmed)
		if indent < 0 {
			indent = depth
		}
		if depth < indent || indent == 0 {
			break
		}
		block = append(block, strings.TrimRight(line[indent:], " \r"))
	}
	for len(block) > 0 && block[len(block)-1] == "" {
		block = block[:len(block)-1]
	}
	return strings.Join(block, "\n") + "\n"
}

// folding reports a script whose lines YAML joins, and the effects.
func (c *checker) folding() {
	s := c.script
	if !s.folded {
		return
	}
	fix := "write luaScript: | in place of luaScript: >, so that YAML keeps the lines"
	joined := strings.Split(s.value, "\n")
	for i, line := range strings.Split(s.text, "\n") {
		comment, ok := commentIn(line)
		if !ok {
			continue
		}
		// The comment must still end its line after YAML has joined the lines.
		swallowed := slices.ContainsFunc(joined, func(l string) bool {
			_, after, found := strings.Cut(l, comment)
			return found && strings.TrimSpace(after) != ""
		})
		if swallowed {
			c.reportAt(i+1, Error, Folded, "YAML joins this line with the next, so the following code becomes part of the comment",
				fix)
			return
		}
	}
	c.report(Finding{Line: s.first - 1, Severity: Warning, Rule: Folded, Fix: fix,
		Message: "YAML joins the lines of a folded scalar: code after a comment becomes part of it, and errors report the wrong line"})
}

// commentIn returns the comment at the end of a line of Lua. It handles quotes, but not long brackets.
func commentIn(line string) (string, bool) {
	var quote byte
	for i := 0; i < len(line); i++ {
		switch {
		case quote != 0 && line[i] == '\\':
			i++
		case quote != 0 && line[i] == quote:
			quote = 0
		case quote == 0 && (line[i] == '"' || line[i] == '\''):
			quote = line[i]
		case quote == 0 && strings.HasPrefix(line[i:], "--"):
			return strings.TrimSpace(line[i:]), true
		}
	}
	return "", false
}
