package cluster

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/slot"
)

// hangingDisk is a file system that hangs while its lock is held.
type hangingDisk struct {
	types.VFS
	hangs *sync.RWMutex
}

func (d hangingDisk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	d.hangs.RLock()
	defer d.hangs.RUnlock()
	f, err := d.VFS.Create(dir, name, size)
	return hangingFile{f, d.hangs}, err
}

func (d hangingDisk) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := d.VFS.OpenWriter(dir, name)
	return hangingFile{f, d.hangs}, err
}

type hangingFile struct {
	types.WritableFile
	hangs *sync.RWMutex
}

func (f hangingFile) WriteAt(p []byte, at int64) (int, error) {
	f.hangs.RLock()
	defer f.hangs.RUnlock()
	return f.WritableFile.WriteAt(p, at)
}

// newHangingFleet starts three nodes. The disk of each hangs while its lock is held.
func newHangingFleet(t *testing.T) (f *fleet, hangs *[3]sync.RWMutex) {
	hangs = new([3]sync.RWMutex)
	f = newFleet(t, 3, func(i int, o *Options) {
		o.Timeout, o.Patience = brisk, brisk
		o.disk = func(v types.VFS) types.VFS { return hangingDisk{v, &hangs[i]} }
	})
	f.startAll()
	f.stable()
	return f, hangs
}

// brisk is a timeout of tests that wait until it has passed.
const brisk = 2 * time.Second

// serve waits until a call on each group is committed, by nodes other than one.
func (f *fleet) serve(not int) {
	f.t.Helper()
	for number := range f.nodes[0].Map().Groups() {
		f.eventually(fmt.Sprint("group ", number, " is served"), func() error {
			for i, n := range f.nodes {
				if p, err := n.Group(number).Leading(); err == nil && i != not {
					return p.Wait(0)
				}
			}
			return errors.New("no node leads")
		})
	}
}

// A node whose disk hangs answers the others. It must not get its groups back until it stores
// something.
func TestANodeWhoseDiskHangsLeadsNothing(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	f, hangs := newHangingFleet(t)
	f.ledAsPlaced()
	hangs[0].Lock()
	f.serve(0)
	for range 30 { // as often as the others would have handed groups back
		for number := range f.nodes[0].Map().Groups() {
			_, err := f.nodes[0].Group(number).Leading()
			require.Error(t, err)
			f.serve(0)
		}
		time.Sleep(f.options[0].balanceInterval)
	}
	hangs[0].Unlock()
	f.ledAsPlaced()
}

// ledAsPlaced waits until each group is led by the node that the map names first.
func (f *fleet) ledAsPlaced() {
	f.t.Helper()
	f.eventually("each group is led by the node that should", func() error {
		for number, names := range f.nodes[0].Map().Replicas {
			for _, n := range f.nodes {
				_, err := n.Group(number).Leading()
				if moved, ok := errors.AsType[*slot.MovedError](err); err != nil && (!ok || moved.Node != names[0]) {
					return fmt.Errorf("group %d on %s: %w", number, n.Name(), err)
				} else if err == nil && n.Name() != names[0] {
					return fmt.Errorf("group %d is led by %s", number, n.Name())
				}
			}
		}
		return nil
	})
}
