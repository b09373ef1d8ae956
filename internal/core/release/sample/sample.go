// Package sample judges one answer to a ReleaseCheck: what a Prometheus, a webhook or a Job says, as a sample.
// core/release decides what a series of samples means.
package sample

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of a sample.
type Outcome string

// The outcomes. NoData and Error neither pass nor fail. After Wait, the check asks again, and the sample does not
// count.
const (
	Pass   Outcome = "Pass"
	Fail   Outcome = "Fail"
	NoData Outcome = "NoData"
	Error  Outcome = "Error"
	Wait   Outcome = "Wait"
)

// Sample is one answer to a check.
type Sample struct {
	Outcome Outcome
	// Value and Control are the numbers that were compared, for people; empty if there are none.
	Value, Control string
	Message        string
	// After is the time until the next sample, if the answer asks for that; 0 for the interval of the check.
	After time.Duration
}

// Failure is a sample without an answer.
func Failure(message string) Sample { return Sample{Outcome: Error, Message: message} }

// severity orders outcomes: the sample of several clusters is the worst one.
var severity = []Outcome{Pass, Wait, NoData, Error, Fail}

// OfClusters is the sample of several clusters: the worst one, with the name of its cluster in the message. One that
// fails decides, whatever the others say. clusters and samples are in the same order.
func OfClusters(clusters []string, samples []Sample) Sample {
	if len(samples) == 0 {
		return Sample{Outcome: NoData, Message: "the stage has no cluster to ask"}
	}
	worst := 0
	for i := range samples {
		if slices.Index(severity, samples[i].Outcome) > slices.Index(severity, samples[worst].Outcome) {
			worst = i
		}
	}
	s := samples[worst]
	s.Message = strings.TrimSuffix("cluster "+clusters[worst]+": "+s.Message, ": ")
	return s
}

// Variables are the values that queries can contain, by name.
type Variables map[string]string

var variable = regexp.MustCompile(`\{\{ *([a-z]+(?:\.[A-Za-z0-9_-]+)?) *\}\}`)

// ArgumentPrefix begins the names of variables that are arguments of the gate.
const ArgumentPrefix = "args."

// unsafe are the characters that could end a string in a query.
var unsafe = regexp.MustCompile("[\"'`\\\\{}\n\r]")

// literal is a number or a duration in PromQL, such as 0.5 or 5m: a value that cannot change a query outside a string.
var literal = regexp.MustCompile(`^(\d+(\.\d+)?([eE]\d+)?|(\d+(ms|[smhdwy]))+)$`)

// Fill replaces the variables of a query. Another user may have written the values, so they cannot change the query:
// in a string, characters that could end it are replaced; outside strings, a value must be a number or a duration,
// and Fill returns an error for others. It leaves names that it does not know; see Unknown.
func (v Variables) Fill(query string) (string, error) {
	var out strings.Builder
	end := 0
	quoted := quotedIn(query)
	for _, at := range variable.FindAllStringSubmatchIndex(query, -1) {
		name := query[at[2]:at[3]]
		value, ok := v[name]
		switch {
		case !ok:
			continue
		case !quoted[at[0]] && !literal.MatchString(value):
			return "", fmt.Errorf("the query has {{%s}} outside quotes, so %q must be a number such as 0.5, or a duration "+
				"such as 5m", name, value)
		case quoted[at[0]]:
			value = unsafe.ReplaceAllString(value, "_")
		}
		out.WriteString(query[end:at[0]] + value)
		end = at[1]
	}
	return out.String() + query[end:], nil
}

// quotedIn reports for each byte of a query whether it is in a string or in a comment.
func quotedIn(query string) []bool {
	quoted := make([]bool, len(query))
	var in byte // the quote that ends the string, or a newline for a comment; 0 outside
	for i := 0; i < len(query); i++ {
		c := query[i]
		quoted[i] = in != 0
		switch {
		case in != 0 && c == '\\' && in != '`' && in != '\n' && i+1 < len(query):
			i++
			quoted[i] = true
		case c == in:
			in = 0
		case in != 0:
		case c == '"' || c == '\'' || c == '`':
			in = c
		case c == '#':
			in = '\n'
		}
	}
	return quoted
}

// Unquoted is the first variable in a query that is outside quotes, and neither an argument of the gate nor one of
// literals; empty if there is none. Its value would never be a number or a duration.
func Unquoted(query string, literals ...string) string {
	quoted := quotedIn(query)
	for _, at := range variable.FindAllStringSubmatchIndex(query, -1) {
		if name := query[at[2]:at[3]]; !quoted[at[0]] && !strings.HasPrefix(name, ArgumentPrefix) &&
			!slices.Contains(literals, name) {
			return name
		}
	}
	return ""
}

// VariableNames are the variables of queries, sorted.
var VariableNames = []string{"cluster", "clusters", "environment", "name", "namespace", "release", "revision", "stage"}

// Unknown is the first variable in a text that is neither one of names nor an argument; empty if all are.
func Unknown(text string, names []string) string {
	for _, name := range Names(text) {
		if !slices.Contains(names, name) && !strings.HasPrefix(name, ArgumentPrefix) {
			return name
		}
	}
	return ""
}

// MissingArgument is the name of the first argument in the texts that v lacks; empty if there is none.
func (v Variables) MissingArgument(texts ...string) string {
	for _, text := range texts {
		for _, name := range Names(text) {
			argument, isArgument := strings.CutPrefix(name, ArgumentPrefix)
			if _, ok := v[name]; isArgument && !ok {
				return argument
			}
		}
	}
	return ""
}

func Names(text string) (names []string) {
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// PerCluster reports whether one of the texts has the variable cluster.
func PerCluster(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return slices.Contains(Names(text), "cluster") })
}
