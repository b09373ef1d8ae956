package validate

import (
	"errors"
	"fmt"
	"strings"
)

// jsonPath checks that p names one field: names behind dots, or quoted in brackets, and indexes. Filters and wildcards name many.
//
//	.spec.replicas   $.spec.template   .metadata.annotations['a.b/c']   .spec.containers[0].image
func jsonPath(p string) error {
	rest := strings.TrimPrefix(p, "$")
	if rest == "" {
		return errors.New("must name a field, such as .spec.replicas")
	}
	for rest != "" {
		at := len(p) - len(rest)
		var ok bool
		switch {
		case rest[0] == '.':
			n := 1
			for n < len(rest) && isNameByte(rest[n], n == 1) {
				n++
			}
			rest, ok = rest[n:], n > 1
		case rest[0] == '[' && len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"'):
			end := strings.Index(rest[2:], string(rest[1])+"]")
			if ok = end > 0; ok {
				rest = rest[2+end+2:]
			}
		case rest[0] == '[':
			index, after, closed := strings.Cut(rest[1:], "]")
			if ok = closed && index != "" && strings.Trim(index, "0123456789") == ""; ok {
				rest = after
			}
		}
		if !ok {
			return fmt.Errorf("character %d: expected .name, ['name'] or [index]", at+1)
		}
	}
	return nil
}

func isNameByte(c byte, first bool) bool {
	letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return letter || !first && ('0' <= c && c <= '9' || c == '-')
}
