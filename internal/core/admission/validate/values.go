package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// valid returns what a check of Kubernetes finds wrong with a value.
func valid[T any](path *field.Path, value T, check func(T) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range check(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

// supported refuses a value that is not in the list.
func supported[T ~string](path *field.Path, value T, list ...T) field.ErrorList {
	if slices.Contains(list, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, list)}
}

// required refuses an empty text. example says what it should be.
func required[T ~string](path *field.Path, value T, example string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, example)}
}

// apiVersion refuses a text that is not an apiVersion. It may be empty.
func apiVersion(path *field.Path, text string) field.ErrorList {
	if _, err := schema.ParseGroupVersion(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be VERSION or GROUP/VERSION, such as v1 or apps/v1")}
	}
	return nil
}

// joined returns the texts of all elements that are not empty, with commas.
func joined[T any](all []T, text func(T) string) string {
	var texts []string
	for _, element := range all {
		if t := text(element); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, ",")
}
