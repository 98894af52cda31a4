//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/integration/disk"
	"rlserver/integration/network"
)

type settings struct {
	time   time.Duration
	nodes  int
	broken bool
	faults string
	build  string
	keep   string

	possible bool
}

// inside is set in the environment of the program that runs in a namespace of its own.
const inside = "NEMESIS_INSIDE"

func main() {
	if len(os.Args) > 1 && os.Args[1] == disk.Argument {
		fmt.Fprintln(os.Stderr, "nemesis:", disk.Run(os.Args[2:]))
		os.Exit(1)
	}
	var s settings
	flag.DurationVar(&s.time, "time", 10*time.Minute, "how long, or with -broken how long each build at most")
	flag.IntVar(&s.nodes, "nodes", 3, "how many nodes")
	flag.BoolVar(&s.broken, "broken", false, "run servers that are broken on purpose: each must be noticed")
	flag.StringVar(&s.faults, "faults", "", "the names of the only faults, with commas between them")
	flag.StringVar(&s.build, "build", "", "with -broken, the tag of the only build")
	flag.StringVar(&s.keep, "logs", "", "a folder to which the logs of the nodes are written")
	flag.BoolVar(&s.possible, "possible", false, "only say whether this machine can run it")
	flag.Parse()
	run := s.outside
	if os.Getenv(inside) != "" {
		run = s.run
	}
	if err := run(); errors.Is(err, errFound) {
		os.Exit(findingCode)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "nemesis:", err)
		os.Exit(1)
	}
}

// outside builds the servers, and runs the program again in namespaces of its own, with which all
// devices and file systems end.
func (s *settings) outside() error {
	dir, err := os.MkdirTemp("", "nemesis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch {
	case s.possible:
		return s.again(ctx, dir)
	case !s.broken:
		return s.try(ctx, dir, sound)
	}
	return s.tryAll(ctx, dir)
}

// findingCode is the exit code after a finding. The file has the row of the table of builds.
const (
	findingCode = 3
	findingFile = "finding"
)

// try builds a server and runs it.
func (s *settings) try(ctx context.Context, dir, tags string) error {
	binary := filepath.Join(dir, "rlserver")
	if out, err := exec.Command("go", "build", "-tags", tags, "-o", binary, "rlserver/cmd/rlserver").
		CombinedOutput(); err != nil {
		return fmt.Errorf("the server cannot be built: %w\n%s", err, out)
	}
	return s.again(ctx, dir)
}

// again runs the program again in namespaces of its own.
func (s *settings) again(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(os.Args[1:], "-faults", s.faults)...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = network.Alone()
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("network namespaces cannot be made here, run it as root on Linux: %w", err)
	}
	return cmd.Wait()
}

// run is the program in its namespaces.
func (s *settings) run() error {
	redis.SetLogger(quiet{})
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("no file systems of its own can be mounted here: %w", err)
	}
	f, err := s.makeFleet(os.Getenv(inside))
	if err != nil {
		return err
	}
	if s.possible {
		return f.spare.disk.Possible()
	}
	defer s.writeLogs(f)
	defer func() {
		for _, n := range f.all() {
			n.end(syscall.SIGKILL)
		}
	}()
	f.startAll()
	if err := f.healthy(60 * time.Second); err != nil {
		return fmt.Errorf("the cluster does not begin: %w", err)
	}
	hosts := make([]int, 0, len(f.nodes))
	for _, n := range f.nodes {
		hosts = append(hosts, n.host)
	}
	f.clients = startClients(f.book, 8, hosts)
	err = s.runFaults(f)
	after := time.Duration(f.book.now())
	f.clients.end()
	f.book.finish()
	f.print()
	if what := f.finding(); what != "" {
		err = s.report(f, after, what)
	}
	return err
}

// errFound reports that there is a finding, which has been printed.
var errFound = errors.New("the server does not keep its promise")

// report prints a finding, in short if it is expected.
func (s *settings) report(f *fleet, after time.Duration, what string) error {
	first, _, _ := strings.Cut(what, "\n")
	first = strings.TrimSuffix(first, ":")
	if s.broken {
		what = first
	}
	fmt.Println(what)
	row := fmt.Sprintf("%.0f s\t%.120s", after.Seconds(), first)
	return errors.Join(errFound, os.WriteFile(filepath.Join(os.Getenv(inside), findingFile), []byte(row), 0o640))
}

func (s *settings) makeFleet(dir string) (*fleet, error) {
	f := &fleet{
		network: network.New(), book: newBook(), counts: make(map[string]int), gaps: make(map[string]time.Duration),
	}
	if err := f.network.Join(0); err != nil {
		return nil, err
	}
	for host := 1; host <= s.nodes+1; host++ {
		n, err := newNode(host, filepath.Join(dir, fmt.Sprint("n", host)), filepath.Join(dir, "rlserver"), s.nodes,
			f.network)
		if err != nil {
			return nil, err
		}
		if host > s.nodes {
			f.spare = n
		} else {
			f.nodes = append(f.nodes, n)
		}
	}
	return f, nil
}

// runFaults runs one fault after the other, until there is a finding. After each, the cluster must
// serve again.
func (s *settings) runFaults(f *fleet) error {
	list, err := s.chosen()
	if err != nil {
		return err
	}
	var order []int
	for end := time.Now().Add(s.time); time.Now().Before(end) && f.finding() == ""; {
		if len(order) == 0 {
			order = rand.Perm(len(list)) // each in turn, so that a short run has all
		}
		x := list[order[0]]
		order = order[1:]
		f.counts[x.name]++
		fmt.Printf("%6.1f s  %s\n", float64(f.book.now())/1e9, x.name)
		f.book.gap()
		x.do(f)
		f.network.Heal()
		if err := f.healthy(60 * time.Second); err != nil {
			f.diagnose()
			return fmt.Errorf("a minute after %q the cluster does not serve: %w", x.name, err)
		}
		time.Sleep(500 * time.Millisecond)
		f.gaps[x.name] = max(f.gaps[x.name], f.book.gap())
	}
	return nil
}

// chosen returns the faults to draw from.
func (s *settings) chosen() (list []fault, err error) {
	if s.faults == "" {
		return faults, nil
	}
	for name := range strings.SplitSeq(s.faults, ",") {
		at := slices.IndexFunc(faults, func(x fault) bool { return x.name == name })
		if at < 0 {
			return nil, fmt.Errorf("no fault %q: there are %q", name, names(faults))
		}
		list = append(list, faults[at])
	}
	return list, nil
}

// diagnose prints what the nodes say about their groups, and has them log their stacks.
func (f *fleet) diagnose() {
	for _, n := range f.all() {
		fmt.Printf("%s: %s\n", n.name, n.client.Info(context.Background(), "replication").Val())
		n.end(syscall.SIGQUIT)
	}
}

func names(list []fault) (all []string) {
	for _, x := range list {
		all = append(all, x.name)
	}
	return all
}

func (f *fleet) print() {
	b := f.book
	fmt.Printf("%d calls on %d keys: %d admitted, %d denied, %d of unknown outcome, %d refused\n",
		b.calls.Load(), b.keys.Load(), b.admitted.Load(), b.denied.Load(), b.unknown.Load(), b.refused.Load())
	fmt.Printf("%d over-admitted, %d permits lost to unknown outcomes, %d keys not checked, "+
		"%.1f s without an admit at most\n",
		b.over.Load(), b.lost.Load(), b.unchecked.Load(), float64(b.longestGap.Load())/1e9)
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		fmt.Printf("%4d × %s", f.counts[name], name)
		if gap := f.gaps[name]; gap > 0 {
			fmt.Printf(": a group without an answer for %.1f s at most", gap.Seconds())
		}
		fmt.Println()
	}
}

func (s *settings) writeLogs(f *fleet) {
	if s.keep == "" {
		return
	}
	os.MkdirAll(s.keep, 0o750)
	for _, n := range f.all() {
		os.WriteFile(filepath.Join(s.keep, n.name+".log"), []byte(n.log.String()), 0o640)
	}
}

// quiet drops what the client library logs: each connection that is refused.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
