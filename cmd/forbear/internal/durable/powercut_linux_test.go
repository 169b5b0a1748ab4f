package durable

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

// disk is an ext4 file system of the test's own, in a file, whose power can be
// cut: by the ioctl that xfstests uses, which drops everything that was written
// and not synced. It shows what forbear has not synced; it does not show what a
// disk's firmware does.
type disk struct {
	image, dir string
}

// newDisk makes and mounts a disk. That takes root and loop devices: where they
// are missing the test fails when CI=true, and is otherwise skipped.
func newDisk(t *testing.T) *disk {
	t.Helper()
	tmp := t.TempDir()
	d := &disk{filepath.Join(tmp, "disk.img"), filepath.Join(tmp, "disk")}
	err := errors.New("it takes root")
	if os.Getuid() == 0 {
		err = errors.Join(os.Mkdir(d.dir, 0o755), os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 256<<20))
		if err == nil {
			err = tool("mkfs.ext4", "-q", "-F", d.image)
		}
		if err == nil {
			err = tool("mount", "-o", "loop", d.image, d.dir)
		}
	}
	if err != nil {
		why := fmt.Sprintf("a power cut cannot be emulated here: %v (it takes root, loop devices, and mkfs.ext4 from the package e2fsprogs)", err)
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	t.Cleanup(func() { _ = tool("umount", d.dir) })
	return d
}

func tool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// cut stops the file system as it is on the disk, its journal included.
func (d *disk) cut(t *testing.T) {
	t.Helper()
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	f, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	flags := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		t.Fatal(errno)
	}
}

// restore is the start after the cut: what reached the disk is mounted again.
func (d *disk) restore(t *testing.T) {
	t.Helper()
	for range 1000 { // a process that was killed may hold it for a moment
		if err := tool("umount", d.dir); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := tool("mount", "-o", "loop", d.image, d.dir); err != nil {
		t.Fatal(err)
	}
}

// missing returns how many of the ids the database does not know. A database
// that is damaged fails the test.
func missing(t *testing.T, database string, ids []string) (lost int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity check: %s, %v", verdict, err)
	}
	for _, id := range ids {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.message_id = ?", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		lost += 1 - n
	}
	return lost
}

func TestPowerCut(t *testing.T) {
	t.Parallel()
	powerCuts(t, 3)
}
func TestSoakPowerCut(t *testing.T) { ringtest.OnlyNightly(t, "the long form"); powerCuts(t, 40) }

// The power is cut while ten producers write and deliveries are made: every
// message that was acknowledged is there and arrives, and the database is whole.
func powerCuts(t *testing.T, cuts int) {
	d := newDisk(t)
	s := newSink(t)
	database := filepath.Join(d.dir, "forbear.db")
	prepare(t, database, s.URL)
	p := spawn(t, database, "")
	total, twice := 0, 0
	for i := range cuts {
		p.ready(t)
		work := produce(10, p.addr)
		time.Sleep(time.Duration(500+170*(i%5)) * time.Millisecond)
		for end := time.Now().Add(time.Minute); work.count() < 20 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		// The process is stopped in its tracks first, and a sync under way may
		// end: one that the ioctl overtakes may return success (the journal is
		// aborted between its check and its wait), which a power cut cannot do.
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(50 * time.Millisecond)
		d.cut(t)
		p.kill()
		acked := work.end()
		d.restore(t)
		if lost := missing(t, database, acked); lost > 0 {
			t.Fatalf("cut %d: %d of %d acknowledged messages are lost", i+1, lost, len(acked))
		}
		p = spawn(t, database, p.addr)
		twice += s.arrive(t, acked)
		if total += len(acked); len(acked) < 20 {
			t.Errorf("only %d messages were acknowledged before cut %d: nothing was shown", len(acked), i+1)
		}
	}
	p.kill()
	t.Logf("%d cuts, %d messages acknowledged, 0 lost, %d delivered twice", cuts, total, twice)
}

// The counter-proof: without the sync on each commit the same cut does lose
// messages, so that the test above is one.
func TestPowerCutLosesWhatIsNotSynced(t *testing.T) {
	d := newDisk(t)
	database := filepath.Join(d.dir, "forbear.db")
	prepare(t, database, "http://127.0.0.1:9/")
	svc, err := New(t.Context(), Options{Database: database + "?_pragma=synchronous(OFF)", Allow: thisMachine, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var acked []string
	for i := range 200 {
		acked = append(acked, send(t, svc, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}}))
	}
	d.cut(t)
	_ = svc.Close()
	d.restore(t)
	lost := missing(t, database, acked)
	t.Logf("%d of %d lost without the sync", lost, len(acked))
	if lost == 0 {
		t.Error("nothing was lost: the cut cuts nothing")
	}
}

// A dead letter and its alert are on the disk when the letter was accepted.
func TestPowerCutKeepsLetters(t *testing.T) {
	d := newDisk(t)
	database := filepath.Join(d.dir, "forbear.db")
	svc, err := New(t.Context(), Options{Database: database, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := svc.DB.DeadLetters().Put(t.Context(), deadletter.Letter{ID: fmt.Sprint("l", i), Queue: "orders", Reason: "exhausted", Payload: []byte("x"), State: deadletter.Dead}); err != nil {
			t.Fatal(err)
		}
	}
	d.cut(t)
	_ = svc.Close()
	d.restore(t)
	again, err := New(t.Context(), Options{Database: database, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if n, err := again.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 50 || err != nil {
		t.Errorf("%d letters of 50, %v", n, err)
	}
	alerts, err := again.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
	if err != nil || len(alerts) != 1 || alerts[0].Count != 50 {
		t.Errorf("alerts are %+v, %v", alerts, err)
	}
}
