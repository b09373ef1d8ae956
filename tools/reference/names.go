package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// name is what the page says of a label, an annotation or a taint, besides its meaning: that is the doc comment of its
// constant.
type name struct {
	// on is the kind of objects that have it, by who writes it.
	on, by string
	// users is true if users may set it.
	users bool
}

// hub is the writer of what the packages of the hub write.
const hub = "the hub"

// internalNames are names that no user meets on an object of the hub or of a member.
var internalNames = map[string]string{
	"argosy.io/drained": "a taint of simulated clusters, in memory",
}

// facts matches the end of a doc comment that states the facts of a name.
var facts = regexp.MustCompile(`^(.*?) ?On: (.*?)\. (?:Written by: (.*?)\. )?(?:Read by: (.*?)\. )?Users may set it: (.*?)\.?$`)

// factsOf returns the meaning and the facts in a doc comment; stated is false if it states no facts.
func factsOf(doc string) (meaning string, n name, stated bool) {
	m := facts.FindStringSubmatch(doc)
	if m == nil {
		return doc, n, false
	}
	var by []string
	for writer := range strings.SplitSeq(m[3], ", ") {
		switch writer {
		case "users":
		case "cli", "migration":
			writer = "`argosy`"
		default: // a package
			writer = hub
		}
		if !slices.Contains(by, writer) {
			by = append(by, writer)
		}
	}
	n = name{on: m[2], by: strings.Join(by, ", "), users: m[5] != "no"}
	if m[5] != "yes" && m[5] != "no" {
		n.by += " (" + m[5] + ")"
	}
	return m[1], n, true
}

// identifier matches the names of constants in a doc comment.
var identifier = regexp.MustCompile(`\b[A-Za-z]+(Annotation|Label|Of|Key)\b`)

func namesPage(s source) (string, error) {
	byName, byValue := map[string]string{}, map[string]constant{}
	for _, c := range s.constants {
		if ownName.MatchString(c.value) {
			byName[c.dir+"."+c.name] = c.value
			if was, known := byValue[c.value]; !known || len(was.doc) < len(c.doc) {
				byValue[c.value] = c
			}
		}
	}
	var wrong []error
	for value, at := range s.literals {
		_, _, stated := factsOf(byValue[value].doc)
		if internalNames[value] == "" && !stated {
			wrong = append(wrong, fmt.Errorf(
				"%s: the doc comment of %s does not end with its facts, as those in api/wellknown do", at, value))
		}
	}
	var settable, recorded []string
	for _, value := range slices.Sorted(maps.Keys(byValue)) {
		c := byValue[value]
		text, n, stated := factsOf(c.doc)
		if internalNames[value] != "" || !stated {
			continue
		}
		text = strings.TrimSuffix(strings.TrimSuffix(text, "Ours."), " ")
		text = strings.TrimPrefix(text, c.name+": ")
		if rest, ok := strings.CutPrefix(text, c.name); ok {
			text = "`" + value + "`" + rest
		}
		text = identifier.ReplaceAllStringFunc(text, func(word string) string {
			if is := byName[c.dir+"."+word]; is != "" {
				return "`" + is + "`"
			}
			return word
		})
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", value, n.on, n.by, cell(text))
		if n.users {
			settable = append(settable, row)
		} else {
			recorded = append(recorded, row)
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	const head = "| name | on | written by | meaning |\n|---|---|---|---|\n"
	return "# Labels and annotations\n```\nkubectl annotate deployment web argosy.io/rollout-order=Ordered\n```\n" +
		"All names of Argosy that are not in Karmada's API. The names of Karmada mean what they mean there. A template is an " +
		"object that a policy propagates. Objects of OpenKruise also have `argosy.io/VERSION-rest`: see " +
		"[versions](../openkruise.md#versions).\n" +
		"\n## Set by users\n" + head + strings.Join(settable, "") +
		"\n## Set by the hub\nDo not write these: the hub depends on them, and writes them again.\n\n" +
		head + strings.Join(recorded, "") + note, errors.Join(wrong...)
}
