package search

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/argosy-io/argosy/internal/apistatus"
)

// Rows returns an object as kubectl prints it: its columns, and its cells. ok is false for an unknown kind.
type Rows func(apiVersion, kind string, raw []byte) (columns []metav1.TableColumnDefinition, cells []any, ok bool)

// writeTimeout bounds how long a reader may not read. It also ends the memory of the state that the reader gets.
const writeTimeout = 30 * time.Second

// output writes JSON to a client in pieces.
type output struct {
	*bufio.Writer
	control *http.ResponseController
}

func newOutput(w http.ResponseWriter) *output {
	control := http.NewResponseController(w)
	return &output{bufio.NewWriterSize(deadlines{w, control}, 32<<10), control}
}

// flush sends what was written.
func (o *output) flush() error {
	if err := o.Flush(); err != nil {
		return err
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	err := o.control.Flush()
	_ = o.control.SetWriteDeadline(time.Time{})
	return err
}

// deadlines bounds each write.
type deadlines struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (d deadlines) Write(p []byte) (int, error) {
	// Not every server can bound a write; then the connection's own timeouts do.
	_ = d.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := d.w.Write(p)
	_ = d.control.SetWriteDeadline(time.Time{})
	return n, err
}

// format is how objects are written.
type format struct {
	table bool
	// object is what a row has of its object: None, Metadata or Object.
	object metav1.IncludeObjectPolicy
	rows   Rows
	store  *store
}

// format returns the format that the client accepts: JSON, or a table.
func (q *query) format() (f format, err error) {
	f = format{object: metav1.IncludeMetadata, rows: q.engine.Rows, store: q.store}
	if include := q.in.URL.Query().Get("includeObject"); include != "" {
		f.object = metav1.IncludeObjectPolicy(include)
	}
	accept := strings.Join(q.r.Header.Values("Accept"), ",")
	if accept == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || media != runtime.ContentTypeJSON && media != "*/*" && media != "application/*" {
			continue
		}
		switch {
		case params["as"] == "":
			return f, nil
		case params["as"] == "Table" && params["g"] == metav1.GroupName && params["v"] == "v1":
			f.table = true
			return f, nil
		}
	}
	return f, apistatus.Error(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only application/json is served, also as=Table;v=v1;g=meta.k8s.io")
}

// plainColumns are the columns of kinds that the hub cannot print.
var plainColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
	{Name: "Age", Type: "string", Description: "Time since the object was created."},
}

var clusterColumn = metav1.TableColumnDefinition{Name: "Cluster", Type: "string",
	Description: "Member cluster of the object."}

// row returns an object as a row of a table. The cluster is the second column.
func (f format) row(e *entry, raw []byte, now time.Time) (columns []metav1.TableColumnDefinition,
	row metav1.TableRow, err error) {
	var cells []any
	known := false
	if f.rows != nil {
		columns, cells, known = f.rows(f.store.apiVersion(), f.store.kind, raw)
	}
	if !known || len(cells) == 0 || len(columns) != len(cells) {
		columns, cells = plainColumns, []any{e.name, duration.HumanDuration(now.Sub(time.Unix(e.created, 0)))}
	}
	columns = append([]metav1.TableColumnDefinition{columns[0], clusterColumn}, columns[1:]...)
	row.Cells = append([]any{cells[0], e.cluster}, cells[1:]...)
	switch f.object {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Raw = raw
	default:
		var partial struct {
			Metadata json.RawMessage `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &partial); err != nil {
			return nil, row, err
		}
		row.Object.Raw = fmt.Appendf(nil, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":%s}`,
			partial.Metadata)
	}
	return columns, row, nil
}

// one returns an object, or a table of one row. version is for the object.
func (f format) one(e *entry, version string) ([]byte, error) {
	raw := e.json(version)
	if !f.table {
		return raw, nil
	}
	columns, row, err := f.row(e, raw, time.Now())
	if err != nil {
		return nil, err
	}
	return json.Marshal(metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		ListMeta: metav1.ListMeta{ResourceVersion: version}, ColumnDefinitions: columns, Rows: []metav1.TableRow{row}})
}

// write answers a get.
func (q *query) write(e *entry) error {
	f, err := q.format()
	if err != nil {
		return err
	}
	raw, err := f.one(e, e.version)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	q.w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	out := newOutput(q.w)
	_, _ = out.Write(raw)
	_ = out.Flush() // fails only if the client is gone
	return nil
}

// list answers a list: it streams the objects of one state, in pages if the client asks for them.
func (q *query) list(v *view) error {
	f, err := q.format()
	if err != nil {
		return err
	}
	values := q.in.URL.Query()
	limit, err := limitOf(values)
	if err != nil {
		return err
	}
	filter, err := q.filter(values)
	if err != nil {
		return err
	}
	now := q.store.state()
	first := version{q.store.epoch, now.seq, v.hash}
	var after *entry
	if token := values.Get("continue"); token != "" {
		if after, first, err = q.pageOf(token, v); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), filterTime)
	defer cancel()
	found, more, err := collect(ctx, now, q.namespace, after, v.set, filter, limit)
	if err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("the search did not end within %v: %v", filterTime, err), 0)
	}
	if filter.failures > 0 {
		q.addWarning(fmt.Sprintf("the filter failed for %d objects, first for %.200v", filter.failures, filter.failed))
	}
	meta := metav1.ListMeta{ResourceVersion: first.String()}
	if more && len(found) > 0 && filter.order == nil {
		last := found[len(found)-1]
		meta.Continue = page{first.String(), last.namespace, last.name, last.cluster}.token()
	}
	q.w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = f.stream(q.r.Context(), newOutput(q.w), found, meta) // fails only if the client is gone
	return nil
}

func limitOf(values url.Values) (int, error) {
	text := values.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, apierrors.NewBadRequest("limit is not a number of objects")
	}
	return limit, nil
}

// checkEvery is the number of objects between two looks whether the client is gone.
const checkEvery = 256

// collect returns the objects of the clusters after a place that pass the filter. With a limit, more reports whether
// there may be others.
func collect(ctx context.Context, now snapshot, namespace string, after *entry, set map[string]uint64, f *filter,
	limit int) (found []*entry, more bool, err error) {
	seen := 0
	now.visit(namespace, after, func(e *entry) bool {
		if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
			err = ctx.Err()
			return false
		}
		if _, readable := set[e.cluster]; !readable {
			return true
		}
		var passes bool
		if passes, err = f.passes(ctx, e); err != nil {
			return false
		}
		if passes {
			if limit > 0 && len(found) == limit && f.order == nil {
				more = true
				return false
			}
			found = append(found, e)
		}
		return true
	})
	if f.order != nil && err == nil {
		f.sort(found)
		if limit > 0 && len(found) > limit {
			found, more = found[:limit], true
		}
	}
	return found, more, err
}

// stream writes a list. Objects are encoded one at a time, so that its memory does not depend on their number.
func (f format) stream(ctx context.Context, out *output, found []*entry, meta metav1.ListMeta) error {
	head, items := fmt.Sprintf(`{"kind":%q,"apiVersion":%q`, f.store.kind+"List", f.store.apiVersion()), "items"
	if f.table {
		head, items = `{"kind":"Table","apiVersion":"meta.k8s.io/v1"`, "rows"
	}
	_, _ = out.WriteString(head)
	now, wrote := time.Now(), false
	for i, e := range found {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		raw := e.json(e.version)
		var columns []byte
		if f.table {
			definitions, row, err := f.row(e, raw, now)
			if err != nil {
				continue // its JSON was made by the hub
			}
			if raw, err = json.Marshal(row); err != nil {
				continue
			}
			columns, _ = json.Marshal(definitions)
		}
		switch {
		case wrote:
			_ = out.WriteByte(',')
		case f.table:
			_, _ = fmt.Fprintf(out, `,"columnDefinitions":%s,%q:[`, columns, items)
		default:
			_, _ = fmt.Fprintf(out, `,%q:[`, items)
		}
		wrote = true
		if _, err := out.Write(raw); err != nil {
			return err
		}
	}
	if !wrote {
		if f.table {
			columns, _ := json.Marshal(plainColumns)
			_, _ = fmt.Fprintf(out, `,"columnDefinitions":%s`, columns)
		}
		_, _ = fmt.Fprintf(out, `,%q:[`, items)
	}
	tail, _ := json.Marshal(meta) // texts always encode
	_, _ = fmt.Fprintf(out, "],\"metadata\":%s}\n", tail)
	return out.Flush()
}
