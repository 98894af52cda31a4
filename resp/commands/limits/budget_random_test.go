package limits_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/resptest"
)

// histories is how many random histories of each subject are compared with the model. The
// environment variable HISTORIES asks for more.
func histories() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("HISTORIES"), 10, 64)
	if testing.Short() {
		n = cmp.Or(n, 2)
	}
	return cmp.Or(n, 6)
}

// budgetSubjects are what the histories call: the form of its calls, and its rules.
var budgetSubjects = []struct {
	name, form string
	rules      []modelRule
}{
	{"slide", "RL.SLIDE", []modelRule{{"s", "SLIDE", 9, 0, 40}}},
	{"token", "RL.TOKEN", []modelRule{{"t", "TOKEN", 9, 3, 17}}},
	{"fixed", "RL.FIXED", []modelRule{{"f", "FIXED", 9, 0, 33}}},
	{"counter", "RL.COUNTER", []modelRule{{"c", "COUNTER", 9, 0, 37}}},
	{"multi", "RL.MULTI", []modelRule{{"m", "SLIDE", 5, 0, 13}, {"m", "SLIDE", 12, 0, 60}}},
	{"all", "RL.ALL", []modelRule{
		{"a", "SLIDE", 9, 0, 40}, {"b", "TOKEN", 12, 3, 17}, {"a", "SLIDE", 5, 0, 11}, {"d", "FIXED", 14, 0, 33},
		{"e", "COUNTER", 20, 0, 37},
	}},
	{"check", "RL.CHECK", []modelRule{
		{"requests:{ann}", "SLIDE", 6, 0, 20}, {"tokens:{ann}", "TOKEN", 60, 7, 10},
		{"dollars:{ann}", "FIXED", 200, 0, 50}, {"site:{ann}", "COUNTER", 90, 0, 30},
	}},
}

// TestBudgetsAgreeWithTheModel compares all integers of all replies in random histories with those
// of a model that keeps everything in lists.
func TestBudgetsAgreeWithTheModel(t *testing.T) {
	for _, subject := range budgetSubjects {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			for seed := range histories() {
				h := newBudgetHistory(t, seed, subject.form, subject.rules)
				for range 250 {
					h.step()
				}
			}
		})
	}
}

// budgetHistory is a random history, on a server of its own.
type budgetHistory struct {
	t      *testing.T
	s      *resptest.Server
	client *resptest.Client
	m      *model
	rnd    *rand.Rand
	form   string
	rules  []modelRule
	calls  []string // ids
	lines  []string // what was called
}

func newBudgetHistory(t *testing.T, seed uint64, form string, rules []modelRule) *budgetHistory {
	s := resptest.Start(t, nil)
	h := &budgetHistory{
		t: t, s: s, client: s.Dial(), m: newModel(resptest.StartTime), rnd: rand.New(rand.NewPCG(seed, 1)),
		form: form, rules: rules, calls: []string{"A", "B", "C", "D", "E", "F"},
	}
	h.lines = append(h.lines, fmt.Sprint("seed ", seed))
	if form == "RL.CHECK" {
		for _, r := range rules {
			require.Equal(t, "+OK", h.client.Do("RL.POLICY SET "+policyOf(r)+" "+r.words()))
		}
	}
	return h
}

func policyOf(r modelRule) string { return strings.TrimSuffix(r.key, ":{ann}") }

// expect sends a command, and compares its reply.
func (h *budgetHistory) expect(want, command string) {
	h.t.Helper()
	h.lines = append(h.lines, fmt.Sprintf("%6d ms  %s  →  %s", h.m.now-resptest.StartTime, command, want))
	if got := h.client.Do(command); got != want {
		last := h.lines[max(1, len(h.lines)-60):]
		require.FailNow(h.t, "another reply than the model's", "%s\n…\n%s\ngot %s", h.lines[0],
			strings.Join(last, "\n"), got)
	}
}

func (h *budgetHistory) step() {
	switch p := h.rnd.IntN(100); {
	case p < 22:
		h.decide(modelCall{})
	case p < 48:
		h.decide(modelCall{hold: h.anyCall(), ttl: h.anyTTL()})
	case p < 66:
		h.settle()
	case p < 71:
		h.charge()
	case p < 77:
		h.list()
	case p < 97:
		h.pass(h.anyTime())
	case p < 98:
		h.forget()
	default:
		h.move()
	}
}

func (h *budgetHistory) anyCall() string { return h.calls[h.rnd.IntN(len(h.calls))] }

func (h *budgetHistory) anyTTL() int64 {
	return []int64{1, 2, h.rnd.Int64N(20) + 1, h.rnd.Int64N(200) + 1, 5000}[h.rnd.IntN(5)]
}

// anyTime is how long nothing happens: often until just before or when a reservation lapses.
func (h *budgetHistory) anyTime() int64 {
	switch h.rnd.IntN(8) {
	case 0:
		return 100 + h.rnd.Int64N(200)
	case 1:
		return 10_000 + h.rnd.Int64N(2*modelRetention)
	case 2, 3:
		for _, r := range h.rules {
			for _, x := range h.m.key(r.key).holds {
				if left := x.lapse - h.m.now; !x.settled && left > 0 {
					return left - h.rnd.Int64N(2)
				}
			}
		}
	}
	return h.rnd.Int64N(15)
}

func (h *budgetHistory) pass(ms int64) {
	for _, r := range h.rules { // not to the millisecond in which something is forgotten
		for _, x := range h.m.key(r.key).holds {
			if x.settled && x.at+modelRetention == h.m.now+ms {
				ms++
			}
		}
	}
	h.m.now += ms
	h.s.Advance(ms)
}

// anyCosts are costs of the rules: those that share a key have the same.
func (h *budgetHistory) anyCosts(least int64) []int64 {
	one := h.rnd.IntN(3) == 0
	byKey := make(map[string]int64)
	costs := make([]int64, len(h.rules))
	for i, r := range h.rules {
		at := r.key
		if one {
			at = ""
		}
		if _, found := byKey[at]; !found {
			byKey[at] = least + h.rnd.Int64N(1+r.limit/2)
			if h.rnd.IntN(30) == 0 {
				byKey[at] = r.limit + 1
			}
		}
		costs[i] = byKey[at]
	}
	return costs
}

// command is a call as it is sent.
func (h *budgetHistory) command(c modelCall) string {
	var b strings.Builder
	b.WriteString(h.form)
	switch h.form {
	case "RL.ALL":
		for _, r := range c.rules {
			b.WriteString(" " + r.key + " " + r.words())
		}
	case "RL.CHECK":
		b.WriteString(" ann")
		for _, r := range c.rules {
			b.WriteString(" " + policyOf(r))
		}
	default:
		b.WriteString(" " + c.rules[0].key)
		for _, r := range c.rules {
			_, words, _ := strings.Cut(r.words(), " ")
			b.WriteString(" " + words)
		}
	}
	b.WriteString(" COST" + h.costs(c.costs))
	if c.hold != "" {
		fmt.Fprintf(&b, " HOLD %dms ID %s", c.ttl, c.hold)
	}
	if c.id != "" {
		b.WriteString(" ID " + c.id)
	}
	if c.force {
		b.WriteString(" FORCE")
	}
	return b.String()
}

// costs are one number if they are the same, or if the command takes no more.
func (h *budgetHistory) costs(costs []int64) (text string) {
	same := len(slices.Compact(slices.Clone(costs))) == 1
	if same && h.rnd.IntN(2) == 0 || h.form != "RL.ALL" && h.form != "RL.CHECK" {
		costs = costs[:1]
	}
	for _, c := range costs {
		text += fmt.Sprint(" ", c)
	}
	return text
}

// integers is how many the reply has.
func (h *budgetHistory) integers() int { return min(4+len(h.rules), 6) }

// decide makes a call. A denied one is repeated 1 ms before it would be admitted, and then.
func (h *budgetHistory) decide(c modelCall) {
	least := int64(0)
	if c.hold != "" {
		least = 1
	}
	c.rules, c.costs = h.rules, h.anyCosts(least)
	if least == 0 && h.rnd.IntN(12) == 0 {
		clear(c.costs)
	}
	d := h.ask(c)
	if d.retryAfter <= 0 || h.rnd.IntN(2) == 0 {
		return
	}
	h.pass(d.retryAfter - 1)
	if early := h.ask(c); early.allowed == 0 && early.retryAfter != 1 {
		require.FailNow(h.t, "the model has no exact retry_after", "%v then %v", d, early)
	}
	h.pass(1)
	h.ask(c)
}

func (h *budgetHistory) ask(c modelCall) modelDecision {
	h.t.Helper()
	d := h.m.decide(c)
	h.expect(d.text(h.integers()), h.command(c))
	return d
}

// settle settles a call with less, exactly, more or nothing, for some of its keys or all.
func (h *budgetHistory) settle() {
	call := h.anyCall()
	var words, want []string
	var actuals []int64
	whole := h.form == "RL.CHECK" && h.rnd.IntN(3) > 0
	for _, key := range h.keys() {
		k := h.m.key(key)
		rules := k.terms
		if whole {
			rules = h.rulesOf(key)
		} else if len(rules) == 0 || !h.recent(k) || h.rnd.IntN(4) == 0 {
			continue
		}
		actual := max(0, k.holds[call].amount+h.rnd.Int64N(5)-2)
		if h.rnd.IntN(8) == 0 {
			actual = 2 * rules[0].limit
		}
		words = append(words, key, fmt.Sprint(actual))
		actuals = append(actuals, actual)
		want = append(want, h.m.settle(key, rules, actual, call))
	}
	if len(words) == 0 {
		return
	}
	command := "RL.SETTLE " + strings.Join(words, " ") + " ID " + call
	if whole {
		command = "RL.SETTLE CHECK ann"
		for _, r := range h.rules {
			command += " " + policyOf(r)
		}
		command += " COST" + strings.Trim(fmt.Sprint(actuals), "[]") + " ID " + call
		command = strings.Replace(command, "COST", "COST ", 1)
	}
	h.expect(fmt.Sprintf("*%d %s", len(want), strings.Join(want, " ")), command)
}

// keys are those of the rules.
func (h *budgetHistory) keys() (keys []string) {
	for _, r := range h.rules {
		if !slices.Contains(keys, r.key) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

func (h *budgetHistory) rulesOf(key string) (rules []modelRule) {
	for _, r := range h.rules {
		if r.key == key {
			rules = append(rules, r)
		}
	}
	return rules
}

// recent reports whether a key remembers a call: it has a book then.
func (h *budgetHistory) recent(k *modelKey) bool {
	for _, x := range k.holds {
		if h.m.now < max(x.lapse, x.at) {
			return true
		}
	}
	return false
}

// charge charges one key, or all policies.
func (h *budgetHistory) charge() {
	costs := h.anyCosts(1)
	if h.form == "RL.CHECK" && h.rnd.IntN(2) == 0 {
		c := modelCall{rules: h.rules, costs: costs, force: true}
		h.expect(h.m.charge(c).text(h.integers()), h.command(c))
		return
	}
	at := h.rnd.IntN(len(h.rules))
	r := h.rules[at]
	if r.kind == "SLIDE" && len(h.rulesOf(r.key)) > 1 {
		return // other windows would be kept
	}
	k := h.m.key(r.key)
	d := h.m.charge(modelCall{rules: []modelRule{r}, costs: []int64{costs[at]}})
	if len(k.terms) > 0 {
		k.terms = []modelRule{r}
	}
	h.expect(d.text(5), fmt.Sprintf("RL.CHARGE %s %s %d", r.key, r.words(), costs[at]))
}

// list lists the reservations of a key.
func (h *budgetHistory) list() {
	key := h.rules[h.rnd.IntN(len(h.rules))].key
	want := h.m.reservations(key)
	got := h.client.Do("RL.HOLDS " + key)
	head, rest, _ := strings.Cut(got, " ")
	var lines []string
	for _, line := range strings.SplitAfter(strings.ReplaceAll(rest, "*3", "\n*3"), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	require.Equal(h.t, fmt.Sprint("*", len(want)), head, "%s", h.lines[0])
	require.Equal(h.t, want, lines, "%s: RL.HOLDS %s\n%s", h.lines[0], key, strings.Join(h.lines, "\n"))
}

// forget deletes a key, with all that it has reserved.
func (h *budgetHistory) forget() {
	key := h.rules[h.rnd.IntN(len(h.rules))].key
	delete(h.m.keys, key)
	h.client.Do("DEL " + key)
	h.lines = append(h.lines, "DEL "+key)
}

// move has a key copied, deleted and brought back: its reservations come back with it.
func (h *budgetHistory) move() {
	key := h.rules[h.rnd.IntN(len(h.rules))].key
	other := "other:{ann}"
	h.lines = append(h.lines, "move "+key)
	if h.client.Do("EXISTS "+key) == ":0" {
		return
	}
	if !strings.Contains(key, "{") {
		other = "other"
	}
	switch h.rnd.IntN(3) {
	case 0:
		h.expect("+OK", "RENAME "+key+" "+other)
		h.expect("+OK", "RENAME "+other+" "+key)
	case 1:
		h.expect(":1", "COPY "+key+" "+other)
		h.expect(":1", "DEL "+key)
		h.expect("+OK", "RENAME "+other+" "+key)
	default:
		dump := h.client.SendWords("DUMP", key).(string)
		ttl := strings.TrimPrefix(h.client.Do("PTTL "+key), ":")
		h.expect(":1", "DEL "+key)
		require.Equal(h.t, "+OK", h.client.Send("RESTORE", key, strings.Replace(ttl, "-1", "0", 1), dump))
	}
}
