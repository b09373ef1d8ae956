package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite" // also the driver "sqlite"
)

// Results of SQLite, see https://www.sqlite.org/rescode.html. Extended ones have them as low byte.
const (
	sqliteCorrupt    = 11
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteNotADB     = 26
)

// resultOf returns the result of SQLite that an error has, 0 for none.
func resultOf(err error) int {
	var result *sqlite.Error
	if !errors.As(err, &result) {
		return 0
	}
	return result.Code() & 0xff
}

// isConstraint reports whether SQLite refuses the values of a row.
func isConstraint(err error) bool {
	code := resultOf(err)
	return code == sqliteConstraint || code == sqliteTooBig
}

// isDamaged reports whether SQLite finds a file damaged. A file that cannot be read now, such as one that another
// process uses, is not damaged: that is an error.
func isDamaged(ctx context.Context, path string) (bool, error) {
	db, err := openFile(path, "rw")
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	var result string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result)
	if code := resultOf(err); code == sqliteCorrupt || code == sqliteNotADB {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("check the history database %s: %w", path, err)
	}
	return !strings.EqualFold(result, "ok"), nil
}
