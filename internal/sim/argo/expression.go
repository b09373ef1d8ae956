package argo

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// holds evaluates the conditions of steps: words and numbers compared by == != < > <= >=, joined by && || ! and
// parentheses. A word alone asks value; value is nil where words stand for themselves.
func holds(expression string, value func(word string) (bool, error)) (bool, error) {
	p := &parser{tokens: tokens(expression), value: value}
	ok, err := p.or()
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%q is out of place", p.tokens[0])
	}
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", expression, err)
	}
	return ok, nil
}

func tokens(s string) []string {
	var out []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		n := strings.IndexAny(s, " \t()!<>=&|")
		if n < 0 {
			n = len(s)
		}
		n = max(n, 1)
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 && (s[0] == '"' || s[0] == '\'') {
			n = end + 2
		}
		for _, operator := range []string{"&&", "||", "==", "!=", "<=", ">="} {
			if strings.HasPrefix(s, operator) {
				n = 2
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

type parser struct {
	tokens []string
	value  func(string) (bool, error)
}

func (p *parser) next(want ...string) (string, bool) {
	if len(p.tokens) == 0 {
		return "", false
	}
	for _, w := range want {
		if p.tokens[0] == w {
			p.tokens = p.tokens[1:]
			return w, true
		}
	}
	return "", false
}

func (p *parser) or() (bool, error) {
	left, err := p.and()
	for err == nil {
		if _, found := p.next("||"); !found {
			break
		}
		var right bool
		right, err = p.and()
		left = left || right
	}
	return left, err
}

func (p *parser) and() (bool, error) {
	left, err := p.negation()
	for err == nil {
		if _, found := p.next("&&"); !found {
			break
		}
		var right bool
		right, err = p.negation()
		left = left && right
	}
	return left, err
}

func (p *parser) negation() (bool, error) {
	if _, found := p.next("!"); found {
		ok, err := p.negation()
		return !ok, err
	}
	if _, found := p.next("("); found {
		ok, err := p.or()
		if _, closed := p.next(")"); err == nil && !closed {
			err = errors.New("a parenthesis is not closed")
		}
		return ok, err
	}
	if len(p.tokens) == 0 {
		return false, errors.New("it ends too early")
	}
	left := unquote(p.tokens[0])
	p.tokens = p.tokens[1:]
	operator, found := p.next("==", "!=", "<=", ">=", "<", ">")
	if !found {
		if p.value != nil {
			return p.value(left)
		}
		return strconv.ParseBool(left)
	}
	if len(p.tokens) == 0 {
		return false, fmt.Errorf("nothing follows %s", operator)
	}
	right := unquote(p.tokens[0])
	p.tokens = p.tokens[1:]
	order := strings.Compare(left, right)
	if a, err := strconv.ParseFloat(left, 64); err == nil {
		if b, err := strconv.ParseFloat(right, 64); err == nil {
			order = cmp.Compare(a, b)
		}
	}
	switch operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<=":
		return order <= 0, nil
	case ">=":
		return order >= 0, nil
	case "<":
		return order < 0, nil
	}
	return order > 0, nil
}

func unquote(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
