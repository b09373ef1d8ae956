package history

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"
)

// DORA are the four figures by which the DevOps Research and Assessment program measures delivery. Durations are
// seconds; -1 where there is no sample.
type DORA struct {
	Since string `json:"since"`
	Until string `json:"until"`
	// Deployments are finished stages of the environment, PerDay of them a day.
	Deployments int     `json:"deployments"`
	PerDay      float64 `json:"perDay"`
	// LeadTime is from the commit until the stage reached all its clusters. LeadTimesFromStart are the stages of releases
	// that name no time of their commit: theirs is from the start of the release.
	LeadTimeMedian     int64 `json:"leadTimeMedianSeconds"`
	LeadTimeP90        int64 `json:"leadTimeP90Seconds"`
	LeadTimesFromStart int   `json:"leadTimesFromStart"`
	// Started are releases that began, Failed of them were rolled back, aborted or failed.
	Started     int     `json:"started"`
	Failed      int     `json:"failed"`
	FailureRate float64 `json:"failureRate"`
	// RecoveryTime is from the failure until the old revision ran again.
	RecoveryMedian int64 `json:"recoveryMedianSeconds"`
}

// DORA computes the figures of a time, for the stages of one environment or of all.
func (s *Store) DORA(ctx context.Context, f Filter) (DORA, error) {
	d := DORA{Since: f.Since.UTC().Format(time.RFC3339), Until: f.Until.UTC().Format(time.RFC3339)}
	var leads, recoveries []int64
	var w where
	w.oneOf("r.namespace", f.Namespaces)
	w.equal("s.environment", f.Environment)
	w.add("s.phase = 'Done'")
	w.between("s.ended_at", f.Since, f.Until)
	err := s.query(ctx, `SELECT COALESCE(r.committed_at, ''), COALESCE(r.started_at, ''), COALESCE(s.reached_at, '') FROM stages s
		JOIN releases r ON r.uid = s.release_uid`+w.String(), w.values, func(rows *sql.Rows) error {
		var committed, began, reached string
		err := rows.Scan(&committed, &began, &reached)
		d.Deployments++
		before := len(leads)
		leads = appendSeconds(leads, cmp.Or(committed, began), reached)
		if committed == "" {
			d.LeadTimesFromStart += len(leads) - before
		}
		return err
	})
	if err != nil {
		return DORA{}, err
	}
	var started where
	started.oneOf("namespace", f.Namespaces)
	started.between("started_at", f.Since, f.Until)
	started.add("started_at IS NOT NULL")
	err = s.query(ctx, "SELECT outcome, COALESCE(failed_at, ''), COALESCE(ended_at, '') FROM releases"+started.String(),
		started.values, func(rows *sql.Rows) error {
			var outcome, failed, ended string
			err := rows.Scan(&outcome, &failed, &ended)
			d.Started++
			switch outcome {
			case "RolledBack":
				d.Failed++
				recoveries = appendSeconds(recoveries, failed, ended)
			case "Failed", "Aborted":
				d.Failed++
			}
			return err
		})
	if err != nil {
		return DORA{}, err
	}
	if days := f.Until.Sub(f.Since).Hours() / 24; days > 0 {
		d.PerDay = float64(d.Deployments) / days
	}
	if d.Started > 0 {
		d.FailureRate = float64(d.Failed) / float64(d.Started)
	}
	d.LeadTimeMedian, d.LeadTimeP90 = quantile(leads, 50), quantile(leads, 90)
	d.RecoveryMedian = quantile(recoveries, 50)
	return d, nil
}

// appendSeconds appends the seconds between two times; nothing if one of them is missing.
func appendSeconds(all []int64, from, to string) []int64 {
	begin, failed := time.Parse(time.RFC3339, from)
	end, err := time.Parse(time.RFC3339, to)
	if failed != nil || err != nil {
		return all
	}
	return append(all, int64(end.Sub(begin).Seconds()))
}

// quantile returns the smallest value that percent of all values do not exceed; -1 if there are none.
func quantile(values []int64, percent int) int64 {
	if len(values) == 0 {
		return -1
	}
	slices.Sort(values)
	return values[(len(values)*percent+99)/100-1]
}
