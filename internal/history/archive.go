package history

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// archived lists the tables of an archive. Each row comes after the rows that it refers to.
var archived = []table{releasesTable, targetsTable, stagesTable, stageClustersTable, gatesTable, approvalsTable,
	eventsTable, revisionsTable, imagesTable, startsTable, endsTable, fleetTable, usageTable}

type archiveRow struct {
	Table string         `json:"table"`
	Row   map[string]any `json:"row"`
}

// importedAtOnce is the number of rows in one transaction of an import.
const importedAtOnce = 500

// Export writes all rows, one JSON object in each line.
func (s *Store) Export(ctx context.Context, out io.Writer) (rows int, err error) {
	w := bufio.NewWriter(out)
	for _, t := range archived {
		err := s.query(ctx, "SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.name+" ORDER BY "+
			strings.Join(t.columns[:t.keys], ", "), nil, func(found *sql.Rows) error {
			values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := found.Scan(into...); err != nil {
				return err
			}
			line := archiveRow{Table: t.name, Row: map[string]any{}}
			for i, column := range t.columns {
				line.Row[column] = values[i]
			}
			rows++
			return json.NewEncoder(w).Encode(line)
		})
		if err != nil {
			return rows, fmt.Errorf("export table %s: %w", t.name, err)
		}
	}
	return rows, w.Flush()
}

// Import writes the rows of an archive. Rows that are there stay if they are newer.
func (s *Store) Import(ctx context.Context, in io.Reader) (count int, err error) {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	var rows []row
	stale := map[any]bool{} // releases of which a newer state is there
	for {
		var line archiveRow
		err := decoder.Decode(&line)
		if err != nil && !errors.Is(err, io.EOF) {
			return count, fmt.Errorf("read line %d of the archive: %w", count+len(rows)+1, err)
		}
		ended := err != nil
		if !ended {
			next, err := rowOf(line)
			if err != nil {
				return count, fmt.Errorf("read line %d of the archive: %w", count+len(rows)+1, err)
			}
			// The state of a release decides whether the rows of its stages are written.
			if next.table.guard != "" {
				older, err := s.upsertState(ctx, []row{next})
				if err != nil {
					return count, err
				}
				stale[next.values[0]] = older
				count++
				continue
			}
			if !next.table.immutable && next.table.columns[0] == "release_uid" && stale[next.values[0]] {
				count++
				continue
			}
			rows = append(rows, next)
		}
		if len(rows) == importedAtOnce || ended && len(rows) > 0 {
			if err := s.upsert(ctx, rows); err != nil {
				return count, err
			}
			count, rows = count+len(rows), nil
		}
		if ended {
			return count, nil
		}
	}
}

// rowOf reads a line of an archive.
func rowOf(line archiveRow) (row, error) {
	i := slices.IndexFunc(archived, func(t table) bool { return t.name == line.Table })
	if i < 0 {
		return row{}, fmt.Errorf("there is no table %q", line.Table)
	}
	out := row{table: archived[i]}
	for _, column := range out.table.columns {
		value, ok := line.Row[column]
		if !ok {
			value, ok = out.table.added[column]
		}
		if !ok {
			return row{}, fmt.Errorf("a row of table %s has no %s", line.Table, column)
		}
		if v, ok := value.(json.Number); ok {
			n, err := v.Int64()
			if err != nil {
				return row{}, fmt.Errorf("%s of table %s: %w", column, line.Table, err)
			}
			value = n
		}
		out.values = append(out.values, value)
	}
	return out, nil
}
