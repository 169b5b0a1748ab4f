package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// task is one measurement, made by a process of its own.
type task struct {
	Kind     string // bare, forbear, river, river-tuned; burst-..., fill, late, idle
	Database string
	Sink     string
	Messages int
	Rate     float64 // messages in a second, for late
	Length   time.Duration
	Profile  string // a file
}

// report is what a measurement came to.
type report struct {
	Accepted, Delivered float64 // in a second
	Relayed             float64 // in a second, from the outbox
	CPU                 float64 // microseconds of this process for one delivery, or for a second
	Peak                float64 // resident memory, MiB
	P50, P99, Most      float64 // milliseconds late
	Earliest            float64
}

var tasks = map[string]func(context.Context, task) (report, error){
	"bare": bareTask, "forbear": forbearTask, "river": riverTask, "river-tuned": riverTask,
	"burst-sql": burstTask, "burst-pgx": burstTask, "burst-river": burstRiverTask, "burst-river-fast": burstRiverTask,
	"fill": fillTask, "late": lateTask, "idle": idleTask,
}

// taskLimit is how long any one measurement may take.
const taskLimit = 5 * time.Minute

// do runs a task in a process of its own.
func (b *bench) do(ctx context.Context, t task) (r report, err error) {
	t.Sink = b.sink.url()
	if b.profile != "" && t.Kind != "fill" {
		db := "sqlite"
		if strings.HasPrefix(t.Database, "postgres") {
			db = "postgres"
		}
		t.Profile = fmt.Sprintf("%s/%s-%s.pprof", b.profile, t.Kind, db)
	}
	spec, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, taskLimit)
	defer cancel()
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "-task", string(spec))
	cmd.Stdout, cmd.Stderr = &out, &faults
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	before := b.sink.count.Load()
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w: %s", t.Kind, err, faults.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("%s: %w: %s", t.Kind, err, faults.String())
	}
	if got := b.sink.count.Load() - before; r.Delivered > 0 && got < int64(t.Messages) {
		return r, fmt.Errorf("%s: %d of %d messages arrived", t.Kind, got, t.Messages)
	}
	return r, nil
}

// serve is the process of one task.
func serve(spec string) error {
	var t task
	if err := json.Unmarshal([]byte(spec), &t); err != nil {
		return err
	}
	run := tasks[t.Kind]
	if run == nil {
		return errors.New("unknown task " + t.Kind)
	}
	r, err := run(context.Background(), t)
	if err != nil {
		return err
	}
	r.Peak = peak()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// meter is the time and the processor time since it was made.
type meter struct {
	began time.Time
	used  time.Duration
	file  *os.File
}

func newMeter(profile string) (m meter, err error) {
	if profile != "" {
		if m.file, err = os.Create(profile); err == nil {
			err = pprof.StartCPUProfile(m.file)
		}
	}
	m.began, m.used = time.Now(), cpuTime()
	return m, err
}

// read returns operations in a second and microseconds of processor time for
// each.
func (m meter) read(n int) (rate, cpu float64) {
	took, used := time.Since(m.began), cpuTime()-m.used
	if m.file != nil {
		pprof.StopCPUProfile()
		_ = m.file.Close()
	}
	return float64(n) / took.Seconds(), float64(used.Microseconds()) / float64(n)
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the largest resident memory of this process so far, in MiB.
func peak() float64 {
	text, _ := os.ReadFile("/proc/self/status") // 0 where there is none
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	_, _ = fmt.Sscanf(rest, "%f", &kib)
	return kib / 1024
}
