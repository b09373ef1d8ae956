package history

import (
	"bytes"
	"strings"
	"testing"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestArchiveMovesAHistoryToAnotherDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, to *Store) {
		from := openSQLite(t, t.TempDir())
		record(t, from, history()...)
		var archive bytes.Buffer
		exported, err := from.Export(t.Context(), &archive)
		if err != nil || exported != strings.Count(archive.String(), "\n") {
			t.Fatalf("exported %d rows in %d lines: %v", exported, strings.Count(archive.String(), "\n"), err)
		}
		for range 2 {
			imported, err := to.Import(t.Context(), bytes.NewReader(archive.Bytes()))
			if err != nil || imported != exported {
				t.Fatalf("imported %d rows of %d: %v", imported, exported, err)
			}
			if want, got := dump(t, from), dump(t, to); want != got {
				t.Errorf("the rows are\n%s\nwant\n%s", got, want)
			}
		}
		var back bytes.Buffer
		if _, err := to.Export(t.Context(), &back); err != nil || back.String() != archive.String() {
			t.Errorf("the archive of the other database is %v\n%s\nwant\n%s", err, &back, &archive)
		}
	})
}

func TestImportKeepsNewerStatesOfReleases(t *testing.T) {
	from, to := openSQLite(t, t.TempDir()), openSQLite(t, t.TempDir())
	older := release("r1", 0, "x", releasev1alpha1.ReleaseRunning)
	older.ResourceVersion = "5"
	older.Status.Stages[1].Phase = releasev1alpha1.StageUpdating
	record(t, from, older)
	record(t, to, release("r1", 0, "x", releasev1alpha1.ReleaseSucceeded))
	var archive bytes.Buffer
	if _, err := from.Export(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Import(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	if found, err := to.Releases(t.Context(), Filter{}); err != nil || len(found) != 1 || found[0].Phase != "Succeeded" {
		t.Errorf("the releases are %+v, %v", found, err)
	}
	if all := dump(t, to); strings.Contains(all, string(releasev1alpha1.StageUpdating)) {
		t.Errorf("the rows are\n%s", all)
	}
}

func TestDamagedArchiveNamesItsLine(t *testing.T) {
	for archive, want := range map[string]string{
		`{"table": "users", "row": {}}`:                          `line 1 of the archive: there is no table "users"`,
		`{"table": "releases", "row": {"uid": "x"}}`:             "a row of table releases has no namespace",
		`{"table": "revision_images", "row": {"namespace": 1.5,`: "line 1",
	} {
		if _, err := openSQLite(t, t.TempDir()).Import(t.Context(), strings.NewReader(archive)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s returns %v, want %s", archive, err, want)
		}
	}
}
