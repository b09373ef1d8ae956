package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Client is a client of an etcd, inside the process or outside.
type Client = clientv3.Client

// endpointFile is in a member's folder and contains the path of its socket, which is elsewhere if the path is too long.
const endpointFile = "endpoint"

// ErrNotRunning reports that no member runs on a folder.
var ErrNotRunning = errors.New("no hub is running on it")

// Dial connects to the member that runs on dir from another process. Only the user of the member may open the socket.
func Dial(ctx context.Context, dir string) (*Client, error) {
	endpoint, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	return Connect(ctx, []string{strings.TrimSpace(string(endpoint))}, "", "", "")
}

// Connect returns a client of the first of servers that answers.
func Connect(ctx context.Context, servers []string, caFile, certFile, keyFile string) (*Client, error) {
	var failed error
	for _, server := range servers {
		c, err := ConnectAll([]string{server}, caFile, certFile, keyFile)
		if err == nil {
			asking, cancel := context.WithTimeout(ctx, checkTimeout)
			_, err = c.Status(asking, server)
			cancel()
			if err == nil {
				return c, nil
			}
			_ = c.Close()
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", server, err))
	}
	if err := Check(ctx, servers, caFile, certFile, keyFile); err != nil {
		return nil, err // it has the better reason
	}
	return nil, failed
}

// State is the state of a store.
type State struct {
	Revision int64 `json:"revision"`
	// Size is the size of the store on disk. InUse is the part in use; defragmentation frees the rest. Quota is the
	// maximum of Size.
	Size  int64 `json:"sizeBytes"`
	InUse int64 `json:"inUseBytes"`
	Quota int64 `json:"quotaBytes"`
	// Alarms are the active alarms. With NOSPACE etcd rejects writes; with CORRUPT nothing should be written.
	Alarms []string `json:"alarms,omitempty"`
}

// Look reads the state of a store.
func Look(ctx context.Context, c *Client) (State, error) {
	s, err := c.Status(ctx, endpointOf(c))
	if err != nil {
		return State{}, fmt.Errorf("get etcd's status: %w", err)
	}
	alarms, err := c.AlarmList(ctx)
	if err != nil {
		return State{}, fmt.Errorf("list etcd's alarms: %w", err)
	}
	state := State{Revision: s.Header.Revision, Size: s.DbSize, InUse: s.DbSizeInUse, Quota: s.DbSizeQuota}
	for _, a := range alarms.Alarms {
		if name := a.Alarm.String(); !slices.Contains(state.Alarms, name) {
			state.Alarms = append(state.Alarms, name)
		}
	}
	return state, nil
}

// endpointOf returns the endpoint of a client. A client inside the process has none.
func endpointOf(c *Client) string {
	if e := c.Endpoints(); len(e) > 0 {
		return e[0]
	}
	return ""
}

// Compact removes all revisions but the current one.
func Compact(ctx context.Context, c *Client) error {
	state, err := Look(ctx, c)
	if err != nil {
		return err
	}
	_, err = c.Compact(ctx, state.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// Defragment returns unused space to the disk. Reads and writes wait in the meantime: about a second for each 100 MiB
// in use.
func Defragment(ctx context.Context, c *Client) error {
	if _, err := c.Defragment(ctx, endpointOf(c)); err != nil {
		return fmt.Errorf("defragment etcd: %w", err)
	}
	return nil
}

// Disarm clears all NOSPACE alarms. CORRUPT stays: only a restore repairs the store.
func Disarm(ctx context.Context, c *Client) error {
	alarms, err := c.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list etcd's alarms: %w", err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
			return fmt.Errorf("disarm etcd's alarm %s: %w", a.Alarm, err)
		}
	}
	return nil
}

// Snapshot writes a snapshot of the store to w, with its checksum at the end.
func Snapshot(ctx context.Context, c *Client, w io.Writer) error {
	s, err := c.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("take a snapshot of etcd: %w", err)
	}
	defer s.Snapshot.Close()
	if _, err := io.Copy(w, s.Snapshot); err != nil {
		return fmt.Errorf("take a snapshot of etcd: %w", err)
	}
	return nil
}

// Contents describes a snapshot file.
type Contents struct {
	Revision int64
	Keys     int
}

// Inspect reads and checks a whole snapshot file and returns its contents.
func Inspect(file string) (_ Contents, err error) {
	defer notPanicking(&err)
	s, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return Contents{}, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	return Contents{Revision: s.Revision, Keys: s.TotalKey}, nil
}

// revisionBump is how far revisions jump at a restore: more than a hub writes between a backup and its loss (1,000
// writes a second for eleven days). So no client that remembers a revision of the lost store finds it with other
// content.
const revisionBump = 1_000_000_000

// Restore creates a store from a snapshot file in dir, which must not contain one. All earlier revisions are compacted,
// so that clients that watched the lost store list again.
func Restore(file, dir string) (err error) {
	defer notPanicking(&err)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create etcd's data folder: %w", err)
	}
	c := config(dir)
	peers := make([]string, len(c.AdvertisePeerUrls))
	for i := range peers {
		peers[i] = c.AdvertisePeerUrls[i].String()
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{SnapshotPath: file, Name: c.Name,
		OutputDataDir: c.Dir, PeerURLs: peers,
		InitialCluster: c.InitialCluster, InitialClusterToken: c.InitialClusterToken, RevisionBump: revisionBump,
		MarkCompacted: true})
	if err != nil {
		return fmt.Errorf("restore the snapshot: %w", err)
	}
	return nil
}

// notPanicking turns a panic into an error: etcd's storage panics on damaged files.
func notPanicking(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

// NamespaceUID returns the UID of a namespace of the API server that keeps its objects in the store; empty if there is
// none.
func NamespaceUID(ctx context.Context, c *Client, name string) (string, error) {
	got, err := c.Get(ctx, "/registry/namespaces/"+name)
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	if len(got.Kvs) == 0 {
		return "", nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(got.Kvs[0].Value, nil, nil)
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return "", fmt.Errorf("read namespace %s: unexpected type %T", name, obj)
	}
	return string(ns.UID), nil
}

// RaiseNoSpace makes the store reject writes, as it does at its quota. Reads and deletions work.
func RaiseNoSpace(ctx context.Context, c *Client) error {
	s, err := c.Status(ctx, endpointOf(c))
	if err != nil {
		return fmt.Errorf("get etcd's status: %w", err)
	}
	_, err = etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: s.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE})
	if err != nil {
		return fmt.Errorf("raise etcd's alarm NOSPACE: %w", err)
	}
	return nil
}
