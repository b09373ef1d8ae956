package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden matches characters that have no width or change the order of others: texts that differ in them
// look alike. The joiners U+200C and U+200D are left, because languages and emojis need them.
var hidden = regexp.MustCompile(`[\x{ad}\x{61c}\x{115f}\x{1160}\x{180e}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}` +
	`\x{2060}-\x{206f}\x{3164}\x{feff}\x{ffa0}\x{fff9}-\x{fffb}\x{e0000}-\x{e007f}]`)

// display writes JSON that pages show. Texts of tenants and members are in it, so each hidden character becomes U+FFFD.
// A character is never written in two pieces.
type display struct{ http.ResponseWriter }

func (d display) Write(data []byte) (int, error) {
	if _, err := d.ResponseWriter.Write(hidden.ReplaceAll(data, []byte("\ufffd"))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap is for http.ResponseController.
func (d display) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// exact returns a value that users edit or the page sends back as JSON in which hidden characters are escaped: display
// does not change it.
func exact(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	return hidden.ReplaceAllFunc(data, func(char []byte) []byte {
		r, _ := utf8.DecodeRune(char)
		var escaped []byte
		for _, unit := range utf16.AppendRune(nil, r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
		return escaped
	}), err
}
