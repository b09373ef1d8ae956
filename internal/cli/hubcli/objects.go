package hubcli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/explain/simulate"
)

// StandardInput is the name of input without a file.
const StandardInput = "standard input"

// EachFile calls visit with each file, each file in folders that is YAML or JSON by its name, and in for "-", once. Of
// folders it visits those below them only if recursive is set.
func EachFile(in io.Reader, recursive bool, names []string, visit func(name string, text []byte) error) error {
	read := false
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
			return fmt.Errorf("%s: URLs are not supported; download it first, for example with curl, and give the file", name)
		case name == "":
			return errors.New("the file name is empty: give a file, a folder, or - for standard input")
		case name == "-" && read:
			continue
		case name == "-":
			read = true
			text, err := io.ReadAll(in)
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			if err := visit(StandardInput, text); err != nil {
				return err
			}
			continue
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: no such file or folder", name)
		}
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != name && !recursive:
				return filepath.SkipDir
			case d.IsDir() || path != name && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return visit(path, text)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadObjects reads the objects of files, of folders with all below them, or of in for "-": YAML or JSON, one or more
// documents, lists too.
func ReadObjects(in io.Reader, names ...string) (all []simulate.Object, err error) {
	err = EachFile(in, true, names, func(name string, text []byte) error {
		some, err := ReadDocuments(name, bytes.NewReader(text))
		all = append(all, some...)
		return err
	})
	return all, err
}

func ReadDocuments(name string, in io.Reader) ([]simulate.Object, error) {
	var texts [][]byte
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(in)); ; {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: read document %d: %w", name, len(texts)+1, err)
		}
		texts = append(texts, text)
	}
	// A recorded fleet has tens of thousands of documents.
	parsed, errs := make([][]simulate.Object, len(texts)), make([]error, len(texts))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(texts); i += workers {
				at := fmt.Sprintf("%s: document %d", name, i+1)
				if parsed[i], errs[i] = readDocument(at, texts[i]); errs[i] != nil {
					errs[i] = fmt.Errorf("%s: %w", at, errs[i])
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(parsed...), errors.Join(errs...)
}

func readDocument(at string, text []byte) ([]simulate.Object, error) {
	// The reader leaves the separator on a document that follows an empty one.
	for bytes.HasPrefix(text, []byte("---\n")) {
		text = text[len("---\n"):]
	}
	text = bytes.TrimSpace(text)
	// JSON is YAML, and ten times as fast to read by its own rules.
	if !json.Valid(text) {
		var err error
		if text, err = yaml.YAMLToJSONStrict(text); err != nil {
			return nil, err
		}
	}
	if string(text) == "null" || len(text) == 0 {
		return nil, nil // comments alone
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(text, &head); err != nil || head.Kind == "" || head.APIVersion == "" {
		return nil, errors.New("it is not a Kubernetes object: set apiVersion and kind")
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if !u.IsList() {
		return []simulate.Object{{Unstructured: u, Source: at}}, nil
	}
	var all []simulate.Object
	err := u.EachListItem(func(obj apiruntime.Object) error {
		item := obj.(*unstructured.Unstructured)
		if item.GetKind() == "" || item.GetAPIVersion() == "" {
			return fmt.Errorf("item %d is not a Kubernetes object: set apiVersion and kind", len(all)+1)
		}
		all = append(all, simulate.Object{Unstructured: item, Source: fmt.Sprintf("%s, item %d", at, len(all)+1)})
		return nil
	})
	return all, err
}
