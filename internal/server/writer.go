package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/pki"
	"github.com/argosy-io/argosy/internal/version"
)

// writerFile is the record of the writer in the data folder. It is read before keys are renewed and before etcd opens
// the store, which may have a later format. The record in the store is part of backups, and of replicas with their own
// folders.
const writerFile = "version.json"

// writer identifies this binary.
func writer() upkeep.Writer {
	b := version.Get()
	return upkeep.Writer{Format: upkeep.Format, Kubernetes: version.Kubernetes(), Version: b.Version, Commit: b.Commit,
		Date: b.Date}
}

// checkFolder returns why this binary must not start on a data folder. It writes nothing.
func checkFolder(dataDir string) error {
	stored, err := folderWriter(dataDir)
	if err != nil || stored == nil {
		return err
	}
	if err := writer().Opens(*stored); err != nil {
		return fmt.Errorf("data folder %s: %w", dataDir, err)
	}
	return nil
}

// folderWriter returns the version that last wrote a data folder; nil if not recorded.
func folderWriter(dataDir string) (*upkeep.Writer, error) {
	file := filepath.Join(dataDir, writerFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	stored := &upkeep.Writer{}
	if err == nil {
		err = json.Unmarshal(raw, stored)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s, which records the version that wrote the data folder (%w): delete it, since the store also has this record", file, reason(err))
	}
	return stored, nil
}

// startVersion records this version in the store and in the data folder before anything else is written. It writes
// nothing if the version is the same.
func (h *Hub) startVersion(ctx context.Context) (func(), error) {
	client, err := h.storeClient()
	if err != nil {
		return nil, err
	}
	me := writer()
	if err = recordInStore(ctx, client, me); err == nil {
		err = recordInFolder(h.config.DataDir, me)
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	if h.etcd != nil { // this process is the only writer
		return nil, client.Close()
	}
	watching, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := superseded(watching, client, me); err != nil {
			h.fail(err)
		}
	})
	return func() {
		cancel()
		ended.Wait()
		_ = client.Close()
	}, nil
}

// writerKey has the record in the store.
const writerKey = "/argosy/version"

// storeWriter returns the version that last wrote a store; nil if not recorded.
func storeWriter(ctx context.Context, client *etcd.Client) (*upkeep.Writer, error) {
	stored, _, err := readWriter(ctx, client)
	return stored, err
}

func readWriter(ctx context.Context, client *etcd.Client) (*upkeep.Writer, *clientv3.GetResponse, error) {
	got, err := client.Get(ctx, writerKey)
	if err != nil {
		return nil, nil, fmt.Errorf("read which version wrote the store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return nil, got, nil
	}
	stored := &upkeep.Writer{}
	if err := json.Unmarshal(got.Kvs[0].Value, stored); err != nil {
		return nil, nil, fmt.Errorf("read which version wrote the store, in %s: %w", writerKey, err)
	}
	return stored, got, nil
}

// recordInStore records this binary in the store if it is newer than the recorded one. It fails if this binary must not
// write the store.
func recordInStore(ctx context.Context, client *etcd.Client, me upkeep.Writer) error {
	for {
		stored, got, err := readWriter(ctx, client)
		if err != nil {
			return err
		}
		modified := int64(0)
		if stored == nil {
			works := storedAt(workv1alpha1.Resource("works"))
			got, err := client.Get(ctx, works, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return fmt.Errorf("count the Works in the store: %w", err)
			}
			if got.Count > 0 {
				return fmt.Errorf("the store: %w", me.Opens(upkeep.Unrecorded))
			}
		} else {
			if err := me.Opens(*stored); err != nil {
				return fmt.Errorf("the store: %w", err)
			}
			if !me.Succeeds(*stored) {
				return nil
			}
			modified = got.Kvs[0].ModRevision
		}
		done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(writerKey), "=",
			modified)).Then(clientv3.OpPut(writerKey, text.JSON(me))).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace) && stored != nil && stored.Format == me.Format:
			klog.Warning("the store rejects writes, so its version record was not updated; the next start retries")
			return nil
		case err != nil:
			return fmt.Errorf("record this version in the store: %w", err)
		case !done.Succeeded:
			continue // another replica was first
		}
		if stored != nil {
			klog.InfoS("updated the store's version record", "from", stored.String(), "to", me.String())
		}
		return nil
	}
}

// recordInFolder is recordInStore for the data folder.
func recordInFolder(dataDir string, me upkeep.Writer) error {
	stored, err := folderWriter(dataDir)
	if err != nil || stored != nil && !me.Succeeds(*stored) {
		return err
	}
	raw, err := json.MarshalIndent(me, "", "  ")
	if err != nil {
		return err
	}
	if err := pki.WriteFile(filepath.Join(dataDir, writerFile), append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("record this version in data folder %s: %w", dataDir, reason(err))
	}
	return nil
}

// superseded returns an error, with what to do, when a binary has written the store that this one must not follow:
// another replica was upgraded. It returns nil when ctx ends.
func superseded(ctx context.Context, client *etcd.Client, me upkeep.Writer) error {
	for ctx.Err() == nil {
		stored, got, err := readWriter(ctx, client)
		if err == nil {
			if stored != nil {
				if err := me.Opens(*stored); err != nil {
					return fmt.Errorf("another hub on this store was upgraded, so this one exits. The store: %w", err)
				}
			}
			// Read again after each change, and when the watch ends because etcd has no leader or compacted old revisions.
			watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
			<-client.Watch(watching, writerKey, clientv3.WithRev(got.Header.Revision+1))
			cancel()
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
	return nil
}
