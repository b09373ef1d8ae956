// Package messages has code that parses text for people, and code that does not. It is read by a test and never built.
package messages

import (
	"errors"
	"regexp"
	"strings"
)

type condition struct{ Reason, Message string }

type item struct{ AppliedMessage string }

var unauthorized = regexp.MustCompile("401")

func parsesConditions(c condition, i item) bool {
	_, cause, _ := strings.Cut(c.Message, "): ") // parses
	said := strings.TrimSpace(c.Message)
	switch {
	case strings.HasPrefix(said, "Unauthorized"): // parses
	case strings.Contains(strings.ToLower(i.AppliedMessage), "x509"): // parses
	case c.Message == "dispatching is suspended": // parses
	case strings.TrimSuffix(c.Message, " in the cluster") == "": // parses
	case unauthorized.MatchString(c.Message): // parses
	case strings.EqualFold("refused", c.Message): // parses
	case len(strings.Fields(c.Message)) > 3: // parses
	}
	switch c.Message {
	case "refused": // parses
	}
	return cause != ""
}

func parsesErrors(err error) bool {
	if text := err.Error(); strings.Contains(text, "not found") { // parses
		return true
	}
	return err.Error() != "already exists" // parses
}

func parsesParameter(message string) bool {
	return strings.HasPrefix(message, "resource(kind=") // parses
}

func writesText(was, is condition, err error, part error) (string, error) {
	if errors.Is(err, part) || is.Reason == "Unauthorized" || is.Message == "" || was.Message != is.Message {
		return strings.TrimSuffix(is.Message, ".") + ": " + err.Error(), nil
	}
	var lines []string
	for line := range strings.SplitSeq(is.Message, "\n") {
		lines = append(lines, line)
	}
	message := is.Message
	message = "another text"
	return strings.Join(lines, "; "), errors.New(strings.ReplaceAll(message, "\n", " "))
}
