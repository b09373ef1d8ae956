package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/server/backup"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
)

// BackupConfig configures the hub's own backups. A hub with an external etcd takes none, because several hubs may share
// it: its operator backs it up.
type BackupConfig struct {
	// Interval is the time between backups; 0 turns them off.
	Interval metav1.Duration `json:"interval"`
	// Keep is the number of backups that are kept, the newest.
	Keep int `json:"keep"`
	// Dir is the folder of the backups. Default: backups in the data folder, which is on the same disk as the store.
	Dir string `json:"dir,omitempty"`
}

func defaultBackup() BackupConfig {
	return BackupConfig{Interval: metav1.Duration{Duration: time.Hour}, Keep: 24}
}

func defaultQuota() resource.QuantityValue {
	return resource.QuantityValue{Quantity: *resource.NewQuantity(etcd.DefaultQuota, resource.BinarySI)}
}

// The minimal and maximal quota of a store: an empty hub uses 20 MiB, and etcd recommends at most 8 GiB, because a
// store is read completely at a start.
const (
	leastQuota = 32 << 20
	mostQuota  = 100 << 30
)

func (c *Config) bindUpkeepFlags(fs *pflag.FlagSet) {
	fs.Var(&c.Etcd.Quota, "etcd-quota",
		"the maximum size of the hub's own store on disk, such as 8Gi; a full store rejects writes")
	fs.DurationVar(&c.Backup.Interval.Duration, "backup-interval", c.Backup.Interval.Duration,
		"how often the hub takes a backup of its own store and its keys; 0 disables backups")
	fs.IntVar(&c.Backup.Keep, "backup-keep", c.Backup.Keep, "the number of these backups to keep")
	fs.StringVar(&c.Backup.Dir, "backup-dir", c.Backup.Dir,
		"folder for these backups, preferably on another disk (default backups in the data folder)")
}

func (c *Config) validateUpkeep() error {
	switch q := c.Etcd.Quota.Value(); {
	case q < leastQuota || q > mostQuota:
		return fmt.Errorf("etcd.quota %s is not between 32Mi and 100Gi: correct --etcd-quota", c.Etcd.Quota.String())
	case c.Backup.Interval.Duration < 0 || c.Backup.Interval.Duration > 0 && c.Backup.Interval.Duration < time.Second:
		return fmt.Errorf("backup.interval %v is too short: give 1s or more with --backup-interval, or 0 to disable backups",
			c.Backup.Interval.Duration)
	case c.Backup.Keep < 1:
		return fmt.Errorf("backup.keep %d is less than 1: give 1 or more with --backup-keep; --backup-interval=0 disables backups", c.Backup.Keep)
	}
	return nil
}

// BackupDir returns the folder of the hub's own backups.
func (c *Config) BackupDir() string {
	if c.Backup.Dir != "" {
		return c.Backup.Dir
	}
	return filepath.Join(c.DataDir, "backups")
}

const (
	// diskLook and storeLook are the intervals of checks of the disk and the store. A disk may fill within seconds, and a
	// check of it is cheap.
	diskLook, storeLook = time.Second, 10 * time.Second
	// fsyncLook is the period for which the latency of the log's disk is reported.
	fsyncLook = time.Minute
	// firstBackup is how long a due backup waits after a start, so that the start is quick.
	firstBackup = time.Minute
	// upkeepTimeout is the timeout of one backup or one defragmentation.
	upkeepTimeout = 10 * time.Minute
)

// keeper looks after the store of the hub.
type keeper struct {
	config  *Config
	pkiDir  string
	store   *etcd.Client
	own     bool // the store is this process's
	metrics *prometheus.Registry

	mu    sync.Mutex
	state upkeep.Store
	// failed is why the last check of the store failed, backupFailed why the last backup failed; empty after a success.
	failed, backupFailed string
	lastBackup           time.Time
	// covered is until when all that was written is in a backup.
	covered           time.Time
	backups, failures float64
	// slow counts the log's writes by how long they took, up to a minute ago.
	slow map[float64]uint64

	// Only the loop uses these fields. The times are monotonic, so setting a clock does not change them.
	defragged, backedUp, counted time.Time
	first                        bool
	reported                     string
}

// startUpkeep monitors the store from before the start of the API server until after its end.
func (h *Hub) startUpkeep(ctx context.Context) (func(), error) {
	e := h.config.Etcd
	k := &keeper{config: &h.config, pkiDir: filepath.Dir(h.files.ClusterCA), own: h.etcd != nil, first: true,
		metrics: prometheus.NewRegistry()}
	var err error
	if h.etcd != nil {
		e.Servers = []string{h.etcd.Endpoint}
	}
	if k.store, err = etcd.Connect(ctx, e.Servers, e.CAFile, e.CertFile, e.KeyFile); err != nil {
		return nil, err
	}
	k.metrics.MustRegister(k, &hubMetrics{hub: h})
	now := time.Now()
	k.defragged, k.backedUp, k.counted = now, now, now
	k.look(ctx)
	h.keeper = k
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { k.run(ctx) })
	return func() {
		cancel()
		running.Wait()
		_ = k.store.Close()
	}, nil
}

func (k *keeper) run(ctx context.Context) {
	if k.own {
		backup.Clean(k.config.BackupDir())
	}
	disk, store := time.NewTicker(diskLook), time.NewTicker(storeLook)
	defer disk.Stop()
	defer store.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-disk.C:
			if !k.own {
				continue
			}
			k.lookAtDisk()
			k.guard(ctx)
			k.backUp(ctx)
		case <-store.C:
			k.look(ctx)
			k.guard(ctx)
			k.defragment(ctx)
			k.logFindings()
		}
	}
}

// look reads the state of the store.
func (k *keeper) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeLook)
	defer cancel()
	state, err := etcd.Look(ctx, k.store)
	k.lookAtDisk()
	k.lookAtFsync()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			k.failed = err.Error()
		}
		return
	}
	k.failed = ""
	k.state.Revision, k.state.Size, k.state.InUse, k.state.Quota, k.state.Alarms = state.Revision, state.Size, state.InUse,
		state.Quota, state.Alarms
}

func (k *keeper) lookAtDisk() {
	if !k.own {
		return
	}
	free, total, err := backup.Free(k.config.DataDir)
	if err != nil {
		return // the file system does not report its free space
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.Free, k.state.Disk = free, total
}

// lookAtFsync updates the fsync latency of the last minute.
func (k *keeper) lookAtFsync() {
	if !k.own || k.slow != nil && time.Since(k.counted) < fsyncLook {
		return
	}
	k.counted = time.Now()
	h, err := etcd.FsyncDurations()
	if err != nil {
		klog.ErrorS(err, "measure the store's fsync latency")
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.Fsync = quantile(0.99, k.slow, h)
	k.slow = map[float64]uint64{math.Inf(1): h.GetSampleCount()}
	for _, b := range h.Bucket {
		k.slow[b.GetUpperBound()] = b.GetCumulativeCount()
	}
}

// quantile returns the upper bound of the bucket that it lies in, of what came since before; 0 if nothing did.
func quantile(q float64, before map[float64]uint64, now *dto.Histogram) time.Duration {
	count := now.GetSampleCount() - before[math.Inf(1)]
	if count == 0 || before == nil {
		return 0
	}
	var last float64
	for _, b := range now.Bucket {
		last = b.GetUpperBound()
		if float64(b.GetCumulativeCount()-before[last]) >= q*float64(count) {
			break
		}
	}
	return time.Duration(last * float64(time.Second))
}

func (k *keeper) storeState() upkeep.Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	s.Alarms = slices.Clone(s.Alarms)
	return s
}

// guard stops writes before the disk is full, and allows them again when there is space.
func (k *keeper) guard(ctx context.Context) {
	raise, disarm := upkeep.Guard(k.storeState())
	if !raise && !disarm {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeLook)
	defer cancel()
	var err error
	if raise {
		err = etcd.RaiseNoSpace(ctx, k.store)
	} else {
		err = etcd.Disarm(ctx, k.store)
	}
	if err != nil {
		klog.ErrorS(err, "keep the disk of the data folder from filling up")
		return
	}
	k.look(ctx)
	k.logFindings()
}

// defragment does so when it pays.
func (k *keeper) defragment(ctx context.Context) {
	if !k.own || !upkeep.DefragPays(k.storeState(), time.Since(k.defragged)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, upkeepTimeout)
	defer cancel()
	before, begin := k.storeState(), time.Now()
	k.defragged = begin
	if err := etcd.Defragment(ctx, k.store); err != nil {
		klog.ErrorS(err, "defragment the store")
		return
	}
	k.look(ctx)
	klog.InfoS("defragmented the store", "before", before.Size, "after", k.storeState().Size, "took", time.Since(begin))
}

// backUp writes a backup when one is due.
func (k *keeper) backUp(ctx context.Context) {
	interval := k.config.Backup.Interval.Duration
	if interval <= 0 {
		return
	}
	since := time.Since(k.backedUp)
	if wait := min(interval, firstBackup); k.first && since < wait || !k.first && since < interval {
		return
	}
	dir := k.config.BackupDir()
	var newest *upkeep.Backup
	all := taken(dir)
	if len(all) > 0 {
		newest = &all[0]
	}
	k.cover(newest)
	due := upkeep.BackupDue(time.Now(), newest, interval, since, k.first, k.storeState().Revision)
	k.first, k.backedUp = false, time.Now()
	if !due {
		return
	}
	err := k.takeBackup(ctx, dir)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.backupFailed = ""; err != nil && ctx.Err() == nil {
		k.backupFailed = err.Error()
		k.failures++
		klog.ErrorS(err, "no backup was taken", "dir", dir)
	} else if err == nil {
		k.backups++
		k.lastBackup = time.Now()
		k.covered = k.lastBackup
	}
}

// cover notes until when the newest backup has all: until now, if nothing was written since. Without one, none has
// anything since the hub looks, so that a first backup which fails is seen to be late.
func (k *keeper) cover(newest *upkeep.Backup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case newest != nil && newest.Revision == k.state.Revision:
		k.covered = time.Now()
	case !k.covered.IsZero():
	case newest != nil:
		k.covered = newest.Time
	default:
		k.covered = time.Now()
	}
}

func (k *keeper) takeBackup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepTimeout)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("backup folder: %w", err)
	}
	free, _, err := backup.Free(dir)
	if err != nil {
		return err
	}
	if err := upkeep.Room(k.storeState().InUse, free); err != nil {
		return fmt.Errorf("not enough space for a backup in %s: %w", dir, err)
	}
	if _, err := backup.Exposed(dir); err != nil {
		return err
	}
	begin := time.Now()
	written, err := storeWriter(ctx, k.store)
	if err != nil {
		return err
	}
	file, m, err := backup.Write(ctx, backup.Source{Store: k.store, Writer: written, PKIDir: k.pkiDir,
		DataDir: k.config.DataDir}, dir, "", begin)
	if err != nil {
		return err
	}
	klog.InfoS("took a backup", "file", file, "revision", m.Revision, "took", time.Since(begin))
	for _, b := range upkeep.Expired(taken(dir), k.config.Backup.Keep) {
		if err := os.Remove(b.File); err != nil {
			return fmt.Errorf("remove the oldest backup: %w", err)
		}
	}
	return nil
}

// taken returns the backups in a folder, the newest first.
func taken(dir string) []upkeep.Backup {
	var all []upkeep.Backup
	for _, file := range backup.List(dir) {
		at, revision, _ := backup.Parse(filepath.Base(file))
		all = append(all, upkeep.Backup{File: file, Revision: revision, Time: at})
	}
	return all
}

// findings returns the current problems.
func (k *keeper) findings() []upkeep.Finding {
	all := upkeep.Judge(k.storeState())
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != "" {
		all = append(all, upkeep.Finding{Name: "store-alarm", Message: "cannot get the state of the store: " + k.failed,
			Next: "check the hub's log (docs/logs.md)"})
	}
	if k.backupFailed != "" {
		all = append(all, upkeep.Finding{Name: "backup", Message: "the last backup failed: " + k.backupFailed,
			Next: "fix that, or choose another folder with --backup-dir; `argosy backup` takes a backup now"})
	}
	return all
}

// logFindings logs the problems when they change.
func (k *keeper) logFindings() {
	var now []string
	for _, f := range k.findings() {
		if k.reported == "" || !strings.Contains(k.reported, f.Name) {
			klog.Warningf("%s: %s; next: %s", f.Name, f.Message, f.Next)
		}
		now = append(now, f.Name)
	}
	if len(now) == 0 && k.reported != "" {
		klog.InfoS("the store is healthy again", "was", k.reported)
	}
	k.reported = strings.Join(now, " ")
}

// check fails readiness while the hub cannot take writes.
func (k *keeper) check(*http.Request) error {
	for _, f := range k.findings() {
		if f.Stops {
			return fmt.Errorf("%s; next: %s", f.Message, f.Next)
		}
	}
	return nil
}

// HealthPath is the URL path of the state of the store, as JSON.
const HealthPath = "/argosy/health"

// Health is what is served at HealthPath.
type Health struct {
	Store upkeep.Store `json:"store"`
	// Findings are the current problems.
	Findings []upkeep.Finding `json:"findings"`
	// LastBackup is the time of the last backup of this process.
	LastBackup *time.Time `json:"lastBackup,omitempty"`
	// Orphans counts orphans per cluster, of the kinds that the hub watches there.
	Orphans map[string]int `json:"orphans,omitempty"`
	// Held counts the Works that are paused since a restore, until a user accepts them.
	Held int `json:"held,omitempty"`
}

// Problems returns the findings, and what the restore of a backup left to decide.
func (h Health) Problems() []upkeep.Finding {
	all := slices.Clone(h.Findings)
	if h.Held > 0 {
		all = append(all, upkeep.Finding{Name: "restore",
			Message: fmt.Sprintf("%d objects in clusters are held since the hub was restored", h.Held),
			Next:    "`argosy restore status` lists them; `argosy restore accept` makes their clusters follow the hub"})
	}
	if len(h.Orphans) > 0 {
		var where []string
		for _, cluster := range slices.Sorted(maps.Keys(h.Orphans)) {
			where = append(where, fmt.Sprintf("%d in %s", h.Orphans[cluster], cluster))
		}
		all = append(all, upkeep.Finding{Name: "orphans", Message: "clusters have objects that the hub does not know: " +
			strings.Join(where, ", "),
			Next: "`argosy get orphans` lists them; `argosy adopt` takes one into the fleet, `argosy orphans delete` deletes it"})
	}
	return all
}

func (h *Hub) health() Health {
	out := Health{Store: h.keeper.storeState(), Findings: h.keeper.findings()}
	if h.parts.Restored != nil {
		out.Orphans, out.Held = h.parts.Restored()
	}
	if out.Findings == nil {
		out.Findings = []upkeep.Finding{}
	}
	h.keeper.mu.Lock()
	if !h.keeper.lastBackup.IsZero() {
		out.LastBackup = new(h.keeper.lastBackup)
	}
	h.keeper.mu.Unlock()
	return out
}

func (h *Hub) serveHealth(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.health()) // fails only if the client is gone
}

// readyz adds problems that do not stop the hub to the verbose answer. Anonymous users get no figures.
func (h *Hub) readyz(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if _, verbose := r.URL.Query()["verbose"]; !verbose {
		next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	if lines := h.warnings(r); len(lines) > 0 {
		end := bytes.LastIndexByte(bytes.TrimRight(body, "\n"), '\n') + 1
		body = slices.Concat(body[:end], []byte(strings.Join(lines, "")), body[end:])
	}
	for name, values := range answer.Header() {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

func (h *Hub) warnings(r *http.Request) []string {
	caller, ok := request.UserFrom(r.Context())
	known := ok && !slices.Contains(caller.GetGroups(), user.AllUnauthenticated)
	var lines []string
	for _, f := range h.keeper.findings() {
		switch {
		case known:
			lines = append(lines, fmt.Sprintf("[!]%s warned: %s; next: %s\n", f.Name, f.Message, f.Next))
		default:
			lines = append(lines, fmt.Sprintf("[!]%s warned: reason withheld\n", f.Name))
		}
	}
	return lines
}

var (
	storeAlarm = prometheus.NewDesc("argosy_store_alarm", "1 while an alarm of the hub's store is active.",
		[]string{"alarm"}, nil)
	storeSize  = prometheus.NewDesc("argosy_store_size_bytes", "Size of the hub's store on disk.", nil, nil)
	storeInUse = prometheus.NewDesc("argosy_store_in_use_bytes",
		"Part of the store that is in use; defragmentation frees the rest.", nil, nil)
	storeQuota = prometheus.NewDesc("argosy_store_quota_bytes", "Maximum size of the hub's store on disk.", nil, nil)
	storeFsync = prometheus.NewDesc("argosy_store_fsync_p99_seconds",
		"99th percentile of the fsync duration of the store's log in the last minute, as the upper bound of a bucket.", nil,
		nil)
	diskFree = prometheus.NewDesc("argosy_data_disk_free_bytes", "Free space on the disk of the data folder.", nil, nil)
	diskSize = prometheus.NewDesc("argosy_data_disk_size_bytes", "Size of the disk of the data folder.", nil, nil)
	findings = prometheus.NewDesc("argosy_store_finding",
		"1 for each active problem of the store, its disk or its backups.", []string{"finding"}, nil)
	backups = prometheus.NewDesc("argosy_backups_total",
		"Number of backups that the hub took automatically, by result.", []string{"result"}, nil)
	backupEvery = prometheus.NewDesc("argosy_backup_interval_seconds",
		"Configured interval of the hub's automatic backups; 0 if they are disabled.", nil, nil)
	backupUntil = prometheus.NewDesc("argosy_backup_covered_timestamp_seconds",
		"Time up to which all writes are covered by an automatic backup of the hub.", nil, nil)
	backupTaken = prometheus.NewDesc("argosy_backup_last_success_timestamp_seconds",
		"Time of the last successful automatic backup of the hub.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *keeper) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{storeAlarm, storeSize, storeInUse, storeQuota, storeFsync, diskFree, diskSize,
		findings, backups, backupEvery, backupUntil, backupTaken} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (k *keeper) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := k.storeState()
	for _, alarm := range []string{upkeep.NoSpace, upkeep.Corrupt} {
		raised := 0.0
		if slices.Contains(s.Alarms, alarm) {
			raised = 1
		}
		gauge(storeAlarm, raised, alarm)
	}
	gauge(storeSize, float64(s.Size))
	gauge(storeInUse, float64(s.InUse))
	gauge(storeQuota, float64(s.Quota))
	seen := map[string]bool{}
	for _, f := range k.findings() {
		if !seen[f.Name] {
			gauge(findings, 1, f.Name)
		}
		seen[f.Name] = true
	}
	if !k.own {
		return
	}
	gauge(storeFsync, s.Fsync.Seconds())
	gauge(diskFree, float64(s.Free))
	gauge(diskSize, float64(s.Disk))
	k.mu.Lock()
	defer k.mu.Unlock()
	for result, n := range map[string]float64{"success": k.backups, "failure": k.failures} {
		out <- prometheus.MustNewConstMetric(backups, prometheus.CounterValue, n, result)
	}
	gauge(backupEvery, k.config.Backup.Interval.Seconds())
	if !k.covered.IsZero() {
		gauge(backupUntil, float64(k.covered.Unix()))
	}
	if !k.lastBackup.IsZero() {
		gauge(backupTaken, float64(k.lastBackup.Unix()))
	}
}

// broken returns an error with what to do about a store that does not start.
func (h *Hub) broken(err error) error {
	dir := h.config.DataDir
	if free, _, asked := backup.Free(dir); asked == nil && free < minStartSpace {
		return fmt.Errorf("%w; the disk of %s has %d MiB left: free some space, the hub requires %d MiB to start", err, dir,
			free>>20, minStartSpace>>20)
	}
	damaged := new(etcd.DamagedError)
	if !errors.As(err, &damaged) && !errors.Is(err, errStoreGone) {
		return err
	}
	newest := "there is no backup in " + h.config.BackupDir() + ": use one stored elsewhere"
	if all := backup.List(h.config.BackupDir()); len(all) > 0 {
		newest = all[0] + " is the newest backup there"
		if m, _, ok := backup.Parse(filepath.Base(all[0])); ok {
			newest += ", of " + m.Format(time.RFC3339)
		}
	}
	return fmt.Errorf("the store cannot be used: %w. Nothing was changed. Restore a backup into another folder, `argosy restore FILE --data-dir NEWFOLDER` (%s), and start the hub with that --data-dir; keep %s until the hub is healthy",
		err, newest, dir)
}

// minStartSpace is less than what a start writes.
const minStartSpace = 96 << 20

// storeMark is in the marker of a data folder that has had a store of its own.
const storeMark = "store\n"

// errStoreGone means that a folder had a store whose files are missing.
var errStoreGone = errors.New("its files are missing")

// storeThere returns an error if the folder lost its store. A hub never creates a new store in its place.
func storeThere(dataDir string) error {
	if _, err := os.Stat(filepath.Join(dataDir, restoringDir)); err == nil {
		return fmt.Errorf("a restore into %s did not complete: empty the folder, and restore again", dataDir)
	}
	mark, err := os.ReadFile(filepath.Join(dataDir, markerFile))
	if err != nil || string(mark) != storeMark || etcd.HasData(filepath.Join(dataDir, "etcd")) {
		return nil
	}
	return fmt.Errorf("%s: %w (to start with an empty store, give an empty --data-dir)", filepath.Join(dataDir, "etcd"),
		errStoreGone)
}

// markStore remembers that the folder has a store.
func markStore(dataDir string) error {
	// not truncated: the file is locked and small
	f, err := os.OpenFile(filepath.Join(dataDir, markerFile), os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(storeMark)
	return errors.Join(err, f.Close())
}
