package argo

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// largest is the most bytes that a Workflow has as JSON with its nodes as they are, by the default of the real
// controller. Those of a larger one are compressed.
const largest = 1 << 20

// compressed is the field of the status that has nodes as JSON, by gzip and base64.
const compressed = "compressedNodes"

// compress has the nodes of a Workflow that is too large take less room, in place.
func compress(u *unstructured.Unstructured) error {
	whole, err := json.Marshal(u.Object)
	if err != nil || len(whole) <= largest {
		return err
	}
	status, _ := u.Object["status"].(map[string]any)
	nodes, err := json.Marshal(status["nodes"])
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(nodes); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	delete(status, "nodes")
	status[compressed] = base64.StdEncoding.EncodeToString(b.Bytes())
	return nil
}

// expand undoes that.
func expand(u *unstructured.Unstructured) error {
	text, found, _ := unstructured.NestedString(u.Object, "status", compressed)
	if !found || text == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("decode the compressed nodes: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("decompress the nodes: %w", err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return fmt.Errorf("decompress the nodes: %w", err)
	}
	var nodes map[string]any
	if err := json.Unmarshal(all, &nodes); err != nil {
		return fmt.Errorf("read the compressed nodes: %w", err)
	}
	status := u.Object["status"].(map[string]any)
	delete(status, compressed)
	status["nodes"] = nodes
	return nil
}
