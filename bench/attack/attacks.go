package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rlserver/internal/rdb"
)

const password = "secret"

// attacks are all attacks, in the order in which they run.
var attacks = []attack{
	{
		name:     "unread replies before AUTH",
		recovers: true,
		flags:    []string{"--requirepass", password, "--maxmemory", "64mb"},
		limiters: 100_000,
		run:      neverRead(command("SET", "key", "value")),
	},
	{name: "unread replies", recovers: true, flags: []string{"--maxmemory", "64mb"}, limiters: 100_000,
		run: neverRead(command("SET", "key", "value"))},
	{name: "unread replies of 1 MB", recovers: true, flags: []string{"--maxmemory", "64mb"}, limiters: 100_000,
		prepare: func(t *target) error { return t.once("SET", "large", strings.Repeat("x", 1<<20)) },
		run:     neverRead(command("GET", "large"))},
	{name: "a subscriber that never reads, beside 50 that do", recovers: true, flags: []string{"--maxmemory", "64mb"},
		limiters: 100_000, run: publishToSleeper},
	{name: "1,000 halves of a 1 MB command", recovers: true, flags: []string{"--maxmemory", "100mb"}, limiters: 100_000,
		run: halfCommands(1000, 1, 1<<20)},
	{
		name:     "5,000 halves of 160 KB before AUTH",
		recovers: true,
		flags:    []string{"--requirepass", password, "--maxmemory", "100mb"},
		limiters: 100_000,
		run:      halfCommands(5000, 10, 16<<10),
	},
	{name: "an endless MULTI queue", recovers: true, flags: []string{"--maxmemory", "64mb"}, limiters: 100_000,
		run: queueForever},
	{
		name:       "KEYS with a hostile pattern",
		limiters:   1000,
		prepare:    hostileKey,
		run:        hostilePattern("KEYS"),
		stopDuring: true,
	},
	{
		name:       "SCAN with a hostile pattern",
		limiters:   1000,
		prepare:    hostileKey,
		run:        hostilePattern("SCAN", "0", "COUNT", "100000", "MATCH"),
		stopDuring: true,
	},
	{name: "an ID of 400 MB", limiters: 1000,
		run: repeat(
			func() []string { return []string{"RL.SLIDE", "key", "10", "1m", "ID", strings.Repeat("x", 400<<20)} },
		)},
	{
		name:     "1,000 slow connections before AUTH",
		flags:    []string{"--requirepass", password, "--maxclients", "1000"},
		limiters: 1000,
		run:      dribble(1000),
	},
	{
		name:     "3,000 pipelines of 100 KB before AUTH",
		flags:    []string{"--requirepass", password},
		limiters: 1000,
		run:      pipelines(3000),
	},
	{name: "RESTORE of what inflates to 40 MB", limiters: 1000, run: repeat(inflating)},
	{name: "wrong passwords", flags: []string{"--requirepass", password}, limiters: 1000, run: guess(16)},
	{name: "wrong passwords, 3 ms each", flags: []string{"--requirepass", password}, limiters: 1000,
		run: guessSilently(16)},
	{name: "160 halves of HTTP requests", flags: []string{"--http-port", "HTTP"}, limiters: 1000,
		run: starveProbes(160)},
	{name: "a foreign page without a password", flags: []string{"--http-port", "HTTP"}, limiters: 1000, run: pretend},
	{name: "ZUNIONSTORE of a million", flags: []string{"--maxmemory", "300mb"}, limiters: 1000, prepare: largeSets,
		run: repeat(fixed("ZUNIONSTORE", "union", "2", "set:1", "set:2"))},
	{
		name:     "ZDIFFSTORE of a million",
		limiters: 1000,
		prepare:  largeSets,
		run:      repeat(fixed("ZDIFFSTORE", "difference", "2", "set:1", "set:2")),
	},
	{name: "ZRANGE of a million", limiters: 1000, prepare: largeSets, run: repeat(fixed("ZRANGE", "set:1", "0", "-1"))},
	{name: "HGETALL of a million", limiters: 1000, prepare: largeHash, run: repeat(fixed("HGETALL", "hash"))},
	{
		name:     "a COST of 1,000,000",
		limiters: 1000,
		run:      repeat(fixed("RL.SLIDE", "costly", "9000000", "500ms", "COST", "1000000")),
	},
	{name: "BZPOPMIN of 60,000 keys", limiters: 1000, run: repeat(pop(60_000))},
	{name: "BZPOPMIN of 100,000 keys", limiters: 1000, run: repeat(pop(100_000))},
	{name: "BZPOPMIN of 1,000,000 keys", limiters: 1000, run: repeat(pop(million))},
	{name: "EXEC of 300,000 calls", limiters: 1000, run: execute(300_000)},
	{
		name:     "20,000 policies reloaded",
		flags:    []string{"--policies", "DIR/policies.yaml"},
		limiters: 1000,
		run:      rereadPolicies(manyPolicies),
	},
	{name: "policies of 200 KB of [", flags: []string{"--policies", "DIR/policies.yaml"}, limiters: 1000,
		run: rereadPolicies(
			func(file string) error { return os.WriteFile(file, bytes.Repeat([]byte("["), 200<<10), 0o600) },
		)},
	{name: "policies from /dev/zero", flags: []string{"--policies", "DIR/policies.yaml"}, limiters: 1000,
		run: rereadPolicies(func(file string) error { os.Remove(file); return os.Symlink("/dev/zero", file) })},
	{name: "3,000 SIGHUPs", flags: []string{"--policies", "DIR/policies.yaml"}, limiters: 1000, run: hangUp(3000)},
}

// once makes one call on a new connection.
func (t *target) once(words ...string) error {
	c, err := t.login()
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := c.call(words...)
	if err == nil && strings.HasPrefix(answer, "-") {
		err = errors.New(answer)
	}
	return err
}

func fixed(words ...string) func() []string { return func() []string { return words } }

// until closes a connection at the end of the attack, which also ends a pending read or write.
func until(ctx context.Context, c *client) { context.AfterFunc(ctx, func() { c.Close() }) }

// neverRead sends a call up to eight million times and reads no reply. The connection does not log
// in.
func neverRead(call []byte) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		c, err := t.connect()
		if err != nil {
			return "", err
		}
		until(ctx, c)
		batch := bytes.Repeat(call, 1000)
		for sent := 0; sent < 8_000_000; sent += 1000 {
			if _, err := c.Write(batch); err != nil {
				if ctx.Err() == nil {
					return fmt.Sprintf("cut off after %d calls at most", sent+1000), nil
				}
				return fmt.Sprintf("took %d calls", sent), nil
			}
		}
		<-ctx.Done()
		return "took all calls", nil
	}
}

// halfCommands opens connections without a login, each of which sends a command with a number of
// arguments of a size, except for the last byte.
func halfCommands(connections, arguments, size int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		var half bytes.Buffer
		fmt.Fprintf(&half, "*%d\r\n", arguments)
		for range arguments {
			fmt.Fprintf(&half, "$%d\r\n%s\r\n", size, strings.Repeat("x", size))
		}
		half.Truncate(half.Len() - 3)
		var open []*client
		for len(open) < connections && ctx.Err() == nil {
			c, err := t.connect()
			if err != nil {
				break
			}
			open = append(open, c)
			c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			c.Write(half.Bytes())
		}
		<-ctx.Done()
		return fmt.Sprintf("%d of %d still connected at the end", connected(open), len(open)), nil
	}
}

// connected closes connections and returns how many of them the server had not closed before.
func connected(open []*client) (n int) {
	for _, c := range open {
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
		c.Close()
	}
	return n
}

// queueForever queues calls in a transaction that is never executed.
func queueForever(ctx context.Context, t *target) (string, error) {
	c, err := t.login()
	if err != nil {
		return "", err
	}
	if _, err := c.call("MULTI"); err != nil {
		return "", err
	}
	value := strings.Repeat("x", 1000)
	until(ctx, c)
	for n := 0; ; n += 1000 {
		if err := c.pipe(1000, func(int) []string { return []string{"SET", "key", value} }); err != nil {
			return fmt.Sprintf("after at least %d calls: %v", n, shortened(err)), nil
		}
	}
}

func shortened(err error) string { return fmt.Sprintf("%.60s", err) }

// hostileKey makes a key in which hostilePattern almost matches at every position.
func hostileKey(t *target) error { return t.once("SET", strings.Repeat("a", 1<<20), "x") }

func hostilePattern(words ...string) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		c, err := t.login()
		if err != nil {
			return "", err
		}
		until(ctx, c)
		answer, err := c.call(append(words, "a*"+strings.Repeat("a", 50<<10)+"b")...)
		if err != nil {
			return "no reply", nil
		}
		return fmt.Sprintf("replied %.60s", answer), nil
	}
}

// repeat makes calls one after another, and reports the time that the last one took.
func repeat(words func() []string) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		c, err := t.login()
		if err != nil {
			return "", err
		}
		defer c.Close()
		send := command(words()...)
		n, took, last := 0, time.Duration(0), ""
		for ; ctx.Err() == nil; n++ {
			begun := time.Now()
			c.SetDeadline(begun.Add(startTime))
			if _, err = c.Write(send); err == nil {
				last, err = c.reply()
			}
			took = time.Since(begun)
			if err != nil {
				c.Close()
				if c, err = t.login(); err != nil {
					return "", err
				}
				last = "closed by the server"
				time.Sleep(100 * time.Millisecond)
			}
		}
		return fmt.Sprintf("%d calls, the last %d ms, replied %.60s", n, took.Milliseconds(), last), nil
	}
}

// dribble opens connections that send one byte per second and never log in.
func dribble(connections int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		var open []*client
		for range connections {
			c, err := t.connect()
			if err != nil {
				break
			}
			open = append(open, c)
		}
		refused := 0
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			for _, c := range open {
				c.Write([]byte("x"))
			}
			if c, err := t.login(); err != nil {
				refused++
			} else {
				c.Close()
			}
			select {
			case <-ctx.Done():
				return fmt.Sprintf("%d of %d still connected at the end; an operator was refused %d times",
					connected(open), len(open), refused), nil
			case <-ticker.C:
			}
		}
	}
}

// guess tries passwords on several connections, in pipelines.
func guess(connections int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		tried := make(chan int)
		for range connections {
			go func() {
				n := 0
				defer func() { tried <- n }()
				c, err := t.connect()
				if err != nil {
					return
				}
				until(ctx, c)
				batch := bytes.Repeat(command("AUTH", "wrong"), 100)
				for {
					c.SetDeadline(time.Now().Add(startTime))
					if _, err := c.Write(batch); err != nil {
						return
					}
					for range 100 {
						if _, err := c.reply(); err != nil {
							return
						}
						n++
					}
				}
			}()
		}
		<-ctx.Done()
		sum := 0
		for range connections {
			sum += <-tried
		}
		return fmt.Sprintf("%d passwords tried", sum), nil
	}
}

const million = 1_000_000

// largeSets makes two sorted sets that share half of a million members.
func largeSets(t *target) error {
	c, err := t.login()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.pipe(2*million/100, func(i int) []string {
		set, from := "set:1", i*100
		if from >= million {
			set, from = "set:2", from-million/2
		}
		words := []string{"ZADD", set}
		for j := range 100 {
			words = append(words, strconv.Itoa((from+j)*7919%million), "member:"+strconv.Itoa(from+j))
		}
		return words
	})
}

func largeHash(t *target) error {
	c, err := t.login()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.pipe(million/100, func(i int) []string {
		words := []string{"HSET", "hash"}
		for j := range 100 {
			words = append(words, "field:"+strconv.Itoa(i*100+j), "value")
		}
		return words
	})
}

// pop returns the words of a call that waits for members of n keys.
func pop(n int) func() []string {
	return func() []string {
		words := []string{"BZPOPMIN"}
		for i := range n {
			words = append(words, "queue:"+strconv.Itoa(i))
		}
		return append(words, "1")
	}
}

// execute runs transactions of n calls.
func execute(n int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		c, err := t.login()
		if err != nil {
			return "", err
		}
		defer c.Close()
		for rounds := 0; ; rounds++ {
			if _, err := c.call("MULTI"); err != nil {
				return "", err
			}
			take := func(i int) []string {
				return []string{"RL.TOKEN", "exec:" + strconv.Itoa(i%1000), "10", "1", "1s"}
			}
			if err := c.pipe(n, take); err != nil {
				return "", err
			}
			begun := time.Now()
			if _, err := c.call("EXEC"); err != nil {
				return "", err
			}
			if ctx.Err() != nil {
				return fmt.Sprintf("%d transactions, the last EXEC took %d ms", rounds+1,
					time.Since(begun).Milliseconds()), nil
			}
		}
	}
}

// fewPolicies is the policy file at the start of a server.
const fewPolicies = "policies:\n  login: {slide: {limit: 5, window: 1m}}\n  api: {token: {capacity: 100, refill: " +
	"10, period: 1s}}\n"

func manyPolicies(file string) error {
	var b bytes.Buffer
	b.WriteString("policies:\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "  policy-%d: {slide: {limit: 5, window: 15m}}\n", i)
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// rereadPolicies replaces the policy file and makes the server reload it.
func rereadPolicies(replace func(file string) error) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		if err := replace(filepath.Join(t.dir, "policies.yaml")); err != nil {
			return "", err
		}
		before := t.cpu()
		t.process.Process.Signal(syscall.SIGHUP)
		<-ctx.Done()
		c, err := t.login()
		if err != nil {
			return "", err
		}
		defer c.Close()
		text, err := os.ReadFile(filepath.Join(t.dir, "log"))
		return fmt.Sprintf("%.1f s of CPU; log: %.80s", (t.cpu() - before).Seconds(), lastLine(text)), err
	}
}

// hangUp sends n SIGHUPs, one per millisecond.
func hangUp(n int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		before := t.cpu()
		for range n {
			t.process.Process.Signal(syscall.SIGHUP)
			time.Sleep(time.Millisecond)
		}
		<-ctx.Done()
		return fmt.Sprintf("%.1f s of CPU", (t.cpu() - before).Seconds()), nil
	}
}

// cpu returns the CPU time of the process.
func (t *target) cpu() time.Duration {
	const ticks = 100 // per second, on every Linux
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.process.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticks
}

// pipelines opens connections without a login one after another, each of which sends 100 KB of
// calls, and logs in meanwhile, again and again.
func pipelines(connections int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		batch := bytes.Repeat([]byte("PING\r\n"), (100<<10)/len("PING\r\n"))
		sent := make(chan int, 1)
		go func() {
			n := 0
			for ; n < connections && ctx.Err() == nil; n++ {
				c, err := t.connect()
				if err != nil {
					break
				}
				until(ctx, c)
				go c.Write(batch)
			}
			sent <- n
		}()
		longest := time.Duration(0)
		for ctx.Err() == nil {
			begun := time.Now()
			c, err := t.login()
			if err != nil {
				return "", err
			}
			c.Close()
			longest = max(longest, time.Since(begun))
		}
		return fmt.Sprintf("%d pipelines, a right login took up to %d ms, and the server %.2f s of CPU", <-sent,
			longest.Milliseconds(), t.cpu().Seconds()), nil
	}
}

// inflating is a call of RESTORE with 0.45 MB that LZF inflates to a listpack of 20 million equal
// entries, which is refused.
func inflating() []string {
	const copies, copied = 150_000, 264
	const size = 6 + 2 + copies*copied + 1
	listpack := binary.LittleEndian.AppendUint32(nil, size)
	listpack = append(listpack, 0xff, 0xff)
	packed := append([]byte{5}, listpack...)
	packed = append(packed, 1, 1, 1)
	packed = append(packed, bytes.Repeat([]byte{0xe0, 0xff, 1}, copies)...)
	packed = append(packed, 0, 0xff)
	payload := []byte{16, 0xc3, 0x80}
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(packed)))
	payload = binary.BigEndian.AppendUint32(append(payload, 0x80), size)
	return []string{"RESTORE", "inflating", "0", string(rdb.AppendFooter(append(payload, packed...)))}
}
