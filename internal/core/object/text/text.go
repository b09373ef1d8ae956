// Package text shortens and joins texts for messages of limited length, counts in words, and reads ages.
package text

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const ellipsis = "…"

// Cut returns s if it has at most most bytes. Otherwise it returns the beginning of s and "…", with at most most bytes
// and valid UTF-8. most must be at least 3, the length of "…".
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}

// Printable returns one line of the printable characters of s, which is safe for a terminal.
func Printable(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// Plain returns one line of printable characters of at most the given number of bytes.
func Plain(s string, most int) string { return Cut(Printable(Cut(s, 4*most)), most) }

// Fprintf is fmt.Fprintf with each text in args as one printable line, for reports to people. It ignores errors.
func Fprintf(out io.Writer, format string, args ...any) {
	for i := range args {
		if s, ok := args[i].(string); ok {
			args[i] = Printable(s)
		}
	}
	_, _ = fmt.Fprintf(out, format, args...)
}

// Message cuts the message of a condition to the length that the API accepts, 32768 characters.
func Message(s string) string { return Cut(s, 32<<10) }

// Names joins names with commas. It shows the first most names and the number of the others: "a, b and 3 more".
func Names(names []string, most int) string {
	shown, more := first(names, most)
	if more == 0 {
		return strings.Join(shown, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
}

// Lines joins statements with semicolons. It shows the first most and the number of the others: "…; …; and 3 more".
func Lines(lines []string, most int) string {
	shown, more := first(lines, most)
	if more == 0 {
		return strings.Join(shown, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(shown, "; "), more)
}

// first returns the first most items and the number of the others. A single other item is not left out.
func first(items []string, most int) (shown []string, more int) {
	if len(items) <= most+1 {
		return items, 0
	}
	return items[:most], len(items) - most
}

// Count returns "1 object" or "3 objects". of is the singular noun.
func Count[N int | int32 | int64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// Object names an object for people: "Deployment shop/web", or "Namespace shop" if it has no namespace.
func Object(kind, namespace, name string) string { return kind + " " + Path(namespace, name) }

// Path returns "shop/web", or "web" without a namespace.
func Path(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// JSON returns v as JSON. It panics if v cannot be encoded: use it only for numbers, texts and API types.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Age parses an age as users write it, such as 12h or 7d. It is not negative.
func Age(value string) (time.Duration, error) {
	if days, is := strings.CutSuffix(value, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of days such as 7d", value)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	age, err := time.ParseDuration(value)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("%q is not an age such as 12h or 7d", value)
	}
	return age, nil
}
