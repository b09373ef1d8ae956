// Package alerts makes the alerts of deploy/monitoring fire: Prometheus' own code reads the file, evaluates the
// expressions and expands the texts. It is a module of its own, so that the hub's needs nothing of Prometheus.
package alerts

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const file = "../../deploy/monitoring/rules.yaml"

// healthy is a hub at which nothing is wrong, with two clusters: the value of each series, for all of the time.
func healthy() map[string]string {
	return map[string]string{
		`up{job="argosy", instance="a"}`:                                                                   "1x240",
		`argosy_loops_running{job="argosy", instance="a"}`:                                                 "1x240",
		`argosy_build_info{job="argosy", instance="a", version="v1.2.0"}`:                                  "1x240",
		`apiserver_request_total{job="argosy", instance="a", code="200"}`:                                  "0+6000x240",
		`apiserver_request_total{job="argosy", instance="a", code="500"}`:                                  "0+6x240",
		`apiserver_request_duration_seconds_bucket{job="argosy", instance="a", verb="POST", le="0.1"}`:     "0+99x240",
		`apiserver_request_duration_seconds_bucket{job="argosy", instance="a", verb="POST", le="4"}`:       "0+100x240",
		`apiserver_request_duration_seconds_bucket{job="argosy", instance="a", verb="POST", le="+Inf"}`:    "0+100x240",
		`workqueue_depth{job="argosy", instance="a", name="execute"}`:                                      "500-2x240",
		`workqueue_depth{job="argosy", instance="a", name="dispatch"}`:                                     "0+1x90",
		`argosy_certificate_expiration_timestamp_seconds{job="argosy", instance="a", certificate="admin"}`: "8640000x240",
		// An authority that was replaced may end.
		`argosy_certificate_expiration_timestamp_seconds{job="argosy", instance="a", certificate="ca-old-1"}`: "60x240",
		`argosy_store_size_bytes{job="argosy", instance="a"}`:                                                 "700x240",
		`argosy_store_quota_bytes{job="argosy", instance="a"}`:                                                "1000x240",
		`argosy_store_alarm{job="argosy", instance="a", alarm="NOSPACE"}`:                                     "0x240",
		`argosy_store_alarm{job="argosy", instance="a", alarm="CORRUPT"}`:                                     "0x240",
		`argosy_data_disk_free_bytes{job="argosy", instance="a"}`:                                             "20000000000x240",
		`argosy_data_disk_size_bytes{job="argosy", instance="a"}`:                                             "100000000000x240",
		`argosy_store_fsync_p99_seconds{job="argosy", instance="a"}`:                                          "0.008x240",
		`argosy_backup_interval_seconds{job="argosy", instance="a"}`:                                          "3600x240",
		`argosy_backup_covered_timestamp_seconds{job="argosy", instance="a"}`:                                 "0x59 3600x59 7200x59 10800x63",
		`cluster_ready_state{job="argosy", instance="a", member_cluster="eu"}`:                                "1x240",
		`cluster_ready_state{job="argosy", instance="a", member_cluster="us"}`:                                "1x240",
		`argosy_member_token_rotation_failed{job="argosy", instance="a", member_cluster="eu"}`:                "0x240",
		// A cluster that issues tokens for one day fires no alert.
		`argosy_member_token_expiration_timestamp_seconds{job="argosy", instance="a", member_cluster="eu", account="karmada-eu"}`: "86400x240",
		`argosy_cluster_templates_not_applied{job="argosy", instance="a", member_cluster="eu"}`:                                   "0x240",
		`scheduler_pending_bindings{job="argosy", instance="a", queue="unschedulable"}`:                                           "0x240",
		`scheduler_pending_bindings{job="argosy", instance="a", queue="active"}`:                                                  "7x240",
		`argosy_restore_held_works{job="argosy", instance="a"}`:                                                                   "0x240",
		`argosy_failover_waiting{job="argosy", instance="a", reason="NothingFits"}`:                                               "0x240",
		// These waits end by themselves.
		`argosy_failover_waiting{job="argosy", instance="a", reason="Tolerated"}`:             "3x240",
		`argosy_failover_waiting{job="argosy", instance="a", reason="ReplacementNotHealthy"}`: "2x240",
		// Approvals take the time that they take.
		`argosy_releases_waiting{job="argosy", instance="a", severity="Attention", actor="Approver", reason="WaitingForApproval"}`: "3x240",
		`argosy_cluster_templates_unhealthy{job="argosy", instance="a", member_cluster="eu", lasting="15m"}`:                       "0x240",
		`argosy_templates_not_interpreted{job="argosy", instance="a", operation="InterpretHealth"}`:                                "0x240",
		// A webhook was down for a moment, a few objects exceed a limit of the script, and a kind is not used any more.
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="w", kind="Web.example.com", operation="Retain", result="success"}`:  "0+10x240",
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="w", kind="Web.example.com", operation="Retain", result="error"}`:    "0x99 40x140",
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="c", kind="Shop.example.com", operation="Retain", result="success"}`: "0+10x240",
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="c", kind="Shop.example.com", operation="Retain", result="error"}`:   "0+1x240",
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="c", kind="Old.example.com", operation="Retain", result="success"}`:  "0x240",
		`argosy_interpreter_calls_total{job="argosy", instance="a", source="c", kind="Old.example.com", operation="Retain", result="error"}`:    "9x240",
		`argosy_quota_used_ratio{job="argosy", instance="a", namespace="shop", name="team", resource="cpu", member_cluster=""}`:                 "0.9x240",
		// Hubs on an external etcd have no quota and no disk of their own, and metrics of a replica that has lost the lead
		// are old.
		`argosy_store_size_bytes{job="argosy-two", instance="b"}`:                                                                   "700x240",
		`argosy_store_quota_bytes{job="argosy-two", instance="b"}`:                                                                  "0x240",
		`argosy_loops_running{job="argosy-two", instance="b"}`:                                                                      "0x240",
		`argosy_loops_running{job="argosy-two", instance="c"}`:                                                                      "1x240",
		`cluster_ready_state{job="argosy-two", instance="b", member_cluster="ap"}`:                                                  "0x240",
		`argosy_cluster_templates_not_applied{job="argosy-two", instance="b", member_cluster="ap"}`:                                 "3x240",
		`argosy_cluster_templates_unhealthy{job="argosy-two", instance="b", member_cluster="ap", lasting="15m"}`:                    "3x240",
		`argosy_templates_not_interpreted{job="argosy-two", instance="b", operation="Retain"}`:                                      "3x240",
		`argosy_quota_used_ratio{job="argosy-two", instance="b", namespace="shop", name="team", resource="cpu", member_cluster=""}`: "1x240",
		`scheduler_pending_bindings{job="argosy-two", instance="b", queue="unschedulable"}`:                                         "3x240",
		`argosy_member_token_rotation_failed{job="argosy-two", instance="b", member_cluster="ap"}`:                                  "1x240",
		`argosy_failover_waiting{job="argosy-two", instance="b", reason="NothingFits"}`:                                             "3x240",
		`argosy_backup_interval_seconds{job="argosy-off", instance="d"}`:                                                            "0x240",
		`argosy_backup_covered_timestamp_seconds{job="argosy-off", instance="d"}`:                                                   "0x240",
		`up{job="argosy-two", instance="b"}`:                                                                                        "1x240",
		`up{job="argosy-two", instance="c"}`:                                                                                        "1x240",
		`up{job="node-exporter", instance="a"}`:                                                                                     "0x240",
		`apiserver_request_total{job="kubernetes", code="500"}`:                                                                     "0+6000x240",
		`workqueue_depth{job="kubernetes", name="nodes"}`:                                                                           "0+100x240",
		`apiserver_request_duration_seconds_bucket{job="kubernetes", instance="a", verb="POST", le="0.1"}`:                          "0x240",
		`apiserver_request_duration_seconds_bucket{job="kubernetes", instance="a", verb="POST", le="+Inf"}`:                         "0+100x240",
	}
}

// series is what Prometheus would have scraped, a sample a minute, all that match any of the matchers.
type series []storage.Series

func load(t *testing.T, text map[string]string) series {
	t.Helper()
	var all series
	for name, values := range text {
		metric, sequence, err := parser.ParseSeriesDesc(name + " " + values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var samples []chunks.Sample
		for minute, v := range sequence {
			samples = append(samples, sample{int64(minute) * time.Minute.Milliseconds(), v.Value})
		}
		all = append(all, storage.NewListSeries(metric, samples))
	}
	return all
}

// Querier implements storage.Queryable.
func (s series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(sorted bool, _ *storage.SelectHints,
		matchers ...*labels.Matcher) storage.SeriesSet {
		found := &found{at: -1}
		for _, one := range s {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.Labels().Get(m.Name)) }) {
				found.all = append(found.all, one)
			}
		}
		if sorted {
			slices.SortFunc(found.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		}
		return found
	}}, nil
}

// sample implements chunks.Sample for what is no histogram.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type found struct {
	all []storage.Series
	at  int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.all) }
func (f *found) At() storage.Series                { return f.all[f.at] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// alerts are the rules of the file, as Prometheus reads and checks it.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// firing is which alerts fire at each minute of four hours, with the annotations and the severity of each: those whose
// expression has had a result for as long as they say, at every evaluation.
func firing(t *testing.T, text map[string]string) []map[string]map[string]string {
	t.Helper()
	have := load(t, text)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute,
		LookbackDelta: 5 * time.Minute})
	query := func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
		q, err := engine.NewInstantQuery(ctx, have, nil, expr, at)
		if err != nil {
			return nil, err
		}
		defer q.Close()
		return q.Exec(ctx).Vector()
	}
	rules := alerts(t)
	since := map[string]time.Time{} // by alert and labels
	var all []map[string]map[string]string
	for minute := range 240 {
		at := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
		now := map[string]map[string]string{}
		for _, rule := range rules {
			vector, err := query(t.Context(), rule.Expr, at)
			if err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
			active := map[string]bool{}
			for _, one := range vector {
				key := rule.Alert + one.Metric.String()
				active[key] = true
				if since[key].IsZero() {
					since[key] = at
				}
				if at.Sub(since[key]) < time.Duration(rule.For) {
					continue
				}
				now[rule.Alert] = map[string]string{"severity": rule.Labels["severity"]}
				data := template.AlertTemplateData(one.Metric.Map(), nil, "", one)
				for name, text := range rule.Annotations {
					text = "{{$labels := .Labels}}{{$value := .Value}}" + text // as Prometheus does
					output, err := template.NewTemplateExpander(t.Context(), text, rule.Alert, data,
						model.TimeFromUnixNano(at.UnixNano()), query, &url.URL{}, []string{"missingkey=error"}).Expand()
					if err != nil {
						t.Fatalf("%s: %s: %v", rule.Alert, name, err)
					}
					now[rule.Alert][name] = output
				}
			}
			for key := range since {
				if name, _, _ := strings.Cut(key, "{"); name == rule.Alert && !active[key] {
					delete(since, key)
				}
			}
		}
		all = append(all, now)
	}
	return all
}

func TestAHealthyHubFiresNoAlert(t *testing.T) {
	for minute, now := range firing(t, healthy()) {
		for alert, messages := range now {
			t.Errorf("after %d minutes %s fires: %v", minute, alert, messages)
		}
	}
}

func TestEachAlertFires(t *testing.T) {
	const a = `job="argosy", instance="a"`
	cases := map[string]struct {
		// series are what differs from a healthy hub.
		series map[string]string
		// quiet is the last minute at which it must not fire yet, fires the first at which it must.
		quiet, fires int
		// says is what has to be in its summary.
		message string
		// also are alerts that fire beside it.
		also []string
	}{
		"ArgosyHubDown": {series: map[string]string{`up{` + a + `}`: "1x10 0x230"}, quiet: 12, fires: 16,
			message: "No replica of the hub argosy can", also: []string{"ArgosyReplicaDown"}},
		"ArgosyReplicaDown": {series: map[string]string{`up{job="argosy", instance="z"}`: "0x240"}, quiet: 4,
			fires: 5, message: "Hub z"},
		"ArgosyControllersNotRunning": {series: map[string]string{`argosy_loops_running{` + a + `}`: "1x10 0x230"},
			quiet: 12, fires: 14, message: "No replica runs the controllers"},
		"ArgosyReplicasOfDifferentVersions": {series: map[string]string{
			`argosy_build_info{job="argosy", instance="z", version="v1.3.0"}`: "1x240",
		}, quiet: 59, fires: 60, message: "different versions"},
		"ArgosyAPIErrors": {series: map[string]string{`apiserver_request_total{` + a +
			`, code="500"}`: "0+600x240"}, quiet: 9, fires: 13, message: "9.09"},
		"ArgosyAPISlow": {series: map[string]string{`apiserver_request_duration_seconds_bucket{` + a +
			`, verb="POST", le="0.1"}`: "0+90x240"}, quiet: 9, fires: 13, message: "POST"},
		"ArgosyWorkqueueGrowing": {series: map[string]string{`workqueue_depth{` + a +
			`, name="dispatch"}`: "0+10x240"}, quiet: 24, fires: 28, message: "dispatch"},
		"ArgosyCertificateExpiring": {series: map[string]string{`argosy_certificate_expiration_timestamp_seconds{` +
			a + `, certificate="apiserver"}`: "864000x240"}, quiet: 59, fires: 61,
			message: "apiserver of the hub expires in 9d"},
		"ArgosyCertificateExpiresSoon": {series: map[string]string{`argosy_certificate_expiration_timestamp_seconds{` +
			a + `, certificate="serving"}`: "86400x240"}, quiet: 4, fires: 6, message: "serving of the hub expires in 2",
			also: []string{"ArgosyCertificateExpiring"}},
		"ArgosyStoreNearQuota": {series: map[string]string{`argosy_store_size_bytes{` + a + `}`: "850x240"},
			quiet: 9, fires: 10, message: "85%"},
		"ArgosyStoreNoSpace": {series: map[string]string{`argosy_store_alarm{` + a +
			`, alarm="NOSPACE"}`: "0x9 1x230"}, quiet: 8, fires: 10, message: "NOSPACE"},
		"ArgosyStoreCorrupt": {series: map[string]string{`argosy_store_alarm{` + a +
			`, alarm="CORRUPT"}`: "0x9 1x230"}, quiet: 8, fires: 10, message: "CORRUPT"},
		"ArgosyDiskNearlyFull": {series: map[string]string{`argosy_data_disk_free_bytes{` + a +
			`}`: "5000000000x240"}, quiet: 4, fires: 5, message: "5%"},
		"ArgosyDiskFull": {series: map[string]string{`argosy_data_disk_free_bytes{` + a +
			`}`: "209715200x240"}, quiet: 0, fires: 1, message: "200MiB", also: []string{"ArgosyDiskNearlyFull"}},
		"ArgosyStoreSlowDisk": {series: map[string]string{`argosy_store_fsync_p99_seconds{` + a +
			`}`: "1.024x240"}, quiet: 9, fires: 10, message: "slow"},
		"ArgosyBackupFailing": {series: map[string]string{`argosy_store_finding{` + a +
			`, finding="backup"}`: "1x240"}, quiet: 4, fires: 5, message: "failed"},
		"ArgosyBackupTooOld": {series: map[string]string{`argosy_backup_covered_timestamp_seconds{` + a +
			`}`: "0x240"}, quiet: 188, fires: 192, message: "last 3h"},
		"ArgosyClusterNotReady": {series: map[string]string{`cluster_ready_state{` + a +
			`, member_cluster="eu"}`: "0x240"}, quiet: 4, fires: 5, message: "Cluster eu"},
		"ArgosyMemberTokenNotRotated": {series: map[string]string{`argosy_member_token_rotation_failed{` + a +
			`, member_cluster="us"}`: "1x240"}, quiet: 14, fires: 15, message: "cluster us"},
		"ArgosyMemberTokenExpiring": {series: map[string]string{`argosy_member_token_rotation_failed{` + a +
			`, member_cluster="eu"}`: "1x240"}, quiet: 14, fires: 15, message: "cluster eu expires in ",
			also: []string{"ArgosyMemberTokenNotRotated"}},
		"ArgosyTemplatesNotApplied": {series: map[string]string{`argosy_cluster_templates_not_applied{` + a +
			`, member_cluster="eu"}`: "2x240"}, quiet: 14, fires: 15, message: "2 templates cannot be applied in cluster eu"},
		"ArgosyBindingsUnschedulable": {series: map[string]string{`scheduler_pending_bindings{` + a +
			`, queue="unschedulable"}`: "4x240"}, quiet: 14, fires: 15, message: "4 bindings"},
		"ArgosyTemplatesUnhealthy": {series: map[string]string{`argosy_cluster_templates_unhealthy{` + a +
			`, member_cluster="eu", lasting="15m"}`: "0x9 2x230"}, quiet: 11, fires: 12,
			message: "2 templates have been unhealthy in cluster eu"},
		"ArgosyTemplatesNotInterpreted": {series: map[string]string{`argosy_templates_not_interpreted{` + a +
			`, operation="InterpretHealth"}`: "3x240"}, quiet: 9, fires: 10, message: "InterpretHealth fails for 3 templates"},
		"ArgosyInterpreterFailing": {series: map[string]string{`argosy_interpreter_calls_total{` + a +
			`, source="c", kind="Shop.example.com", operation="Retain", result="error"}`: "0+90x240"}, quiet: 14, fires: 17,
			message: "Retain of Shop.example.com fails in 90% of the calls"},
		"ArgosyQuotaNearlyUsed": {series: map[string]string{`argosy_quota_used_ratio{` + a +
			`, namespace="shop", name="team", resource="cpu", member_cluster="eu"}`: "0.95x240"}, quiet: 14, fires: 15,
			message: "95% of cpu of the quota shop/team are used in cluster eu."},
		"ArgosyFailoverStuck": {series: map[string]string{`argosy_failover_waiting{` + a +
			`, reason="NothingFits"}`: "5x240"}, quiet: 9, fires: 10, message: "5 workloads cannot fail over: NothingFits"},
		"ArgosyReleaseStuck": {series: map[string]string{`argosy_releases_waiting{` + a +
			`, severity="Problem", actor="User", reason="FleetHalted"}`: "2x240"}, quiet: 9, fires: 10,
			message: "2 releases are stuck: FleetHalted"},
		"ArgosyReleaseWaits": {series: map[string]string{`argosy_releases_waiting{` + a +
			`, severity="Attention", actor="Operator", reason="ClusterUnreachable"}`: "1x240"}, quiet: 59, fires: 60,
			message: "1 releases have waited for an hour: ClusterUnreachable"},
		"ArgosyRestoreOnHold": {series: map[string]string{`argosy_restore_held_works{` + a + `}`: "12x240"},
			quiet: 14, fires: 15, message: "12 Works"},
	}
	for _, rule := range alerts(t) {
		if _, made := cases[rule.Alert]; !made {
			t.Errorf("nothing makes %s fire", rule.Alert)
		}
	}
	for alert, tc := range cases {
		t.Run(alert, func(t *testing.T) {
			t.Parallel()
			text := healthy()
			maps.Copy(text, tc.series)
			all := firing(t, text)
			for minute, now := range all {
				messages, fires := now[alert]
				if fires && minute <= tc.quiet || !fires && minute >= tc.fires && minute <= tc.fires+5 {
					t.Fatalf("after %d minutes it fires: %t", minute, fires)
				}
				for other := range now {
					if other != alert && !slices.Contains(tc.also, other) {
						t.Errorf("after %d minutes %s fires beside it", minute, other)
					}
				}
				if !fires {
					continue
				}
				if !strings.Contains(messages["summary"], tc.message) {
					t.Fatalf("its summary is %q, without %q", messages["summary"], tc.message)
				}
				for _, name := range []string{"summary", "description", "runbook", "severity"} {
					if text := messages[name]; text == "" || strings.Contains(text, "{{") || strings.Contains(text, "<error") ||
						strings.Contains(text, "<no value>") {
						t.Fatalf("its %s is %q", name, text)
					}
				}
			}
		})
	}
}
