package operatecli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
)

func NewConvert() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Rewrite manifests to the form in which the hub stores them",
		Long: `Rewrite manifests to the form in which the hub stores them.

The hub accepts some spellings that are common in public guides but not part of the Karmada API. It rewrites them and
shows a warning. This command does the same to a file. Other objects are not changed; changed objects lose their comments.`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Print nothing unless everything can be printed: half of a file would be applied as if it were complete.
			var out bytes.Buffer
			for _, file := range files {
				if err := convertFile(file, cmd.InOrStdin(), &out, cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			_, err := cmd.OutOrStdout().Write(out.Bytes())
			return err
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file with one or more YAML or JSON documents; - is standard input")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // no such flag
	}
	return cmd
}

func convertFile(file string, in io.Reader, out *bytes.Buffer, warnings io.Writer) error {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: read document %d: %w", file, n, err)
		}
		// The reader leaves the separator on a document that follows an empty one.
		for bytes.HasPrefix(text, []byte("---\n")) {
			text = text[len("---\n"):]
		}
		converted, hints, err := convertDocument(text)
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", file, n, err)
		}
		for _, hint := range hints {
			fmt.Fprintf(warnings, "Warning: %s: document %d, %s\n", file, n, hint)
		}
		if len(bytes.TrimSpace(converted)) == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(bytes.TrimRight(converted, "\n"))
		out.WriteByte('\n')
	}
}

// convertDocument returns text unchanged if there is nothing to rewrite.
func convertDocument(text []byte) (converted []byte, warnings []string, err error) {
	var content map[string]any
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, nil, err
	}
	doc := &unstructured.Unstructured{}
	if yaml.Unmarshal(data, &content) != nil || content["kind"] == nil || doc.UnmarshalJSON(data) != nil {
		return text, nil, nil // not a Kubernetes object
	}
	objects := []*unstructured.Unstructured{doc}
	if items, ok := doc.Object["items"].([]any); ok {
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				objects = append(objects, &unstructured.Unstructured{Object: m})
			}
		}
	}
	changed := false
	for _, obj := range objects {
		_, annotated := obj.GetAnnotations()[wellknown.SubmittedFieldsAnnotation]
		rewritten, texts, err := dialect.Normalise(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		for _, w := range append(texts, dialect.Advise(obj)...) {
			warnings = append(warnings, fmt.Sprintf("%s %s: %s", obj.GetKind(), obj.GetName(), w))
		}
		if rewritten && !annotated {
			// The file is what users will submit from now on, so the last applied configuration is not needed.
			unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", wellknown.SubmittedFieldsAnnotation)
			if len(obj.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
			}
		}
		changed = changed || rewritten
	}
	if !changed {
		return text, warnings, nil
	}
	converted, err = yaml.Marshal(doc.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("write %s %s: %w", doc.GetKind(), doc.GetName(), err)
	}
	return converted, warnings, nil
}
