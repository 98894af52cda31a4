package browser

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = time.Minute

// binary is the server, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rlserver-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "rlserver")
	build := exec.Command("go", "build", "-o", binary, "./cmd/rlserver")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

// serve starts a server until the test ends, and returns a client and the address of the page.
func serve(t *testing.T, flags ...string) (*redis.Client, string) {
	t.Helper()
	for range 20 { // a free port may be taken before the server opens it
		port, web := freePort(t), freePort(t)
		cmd := exec.Command(
			binary,
			append([]string{"--port", port, "--http-port", web, "--dir", t.TempDir()}, flags...)...)
		var output bytes.Buffer
		cmd.Stderr = &output
		require.NoError(t, cmd.Start())
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: 2, DisableIdentity: true})
		for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
			if err := rdb.Ping(t.Context()).Err(); err == nil || strings.Contains(err.Error(), "NOAUTH") {
				t.Cleanup(func() {
					rdb.Close()
					cmd.Process.Signal(os.Interrupt)
					assert.NoError(t, cmd.Wait(), "%s", &output)
				})
				return rdb, "http://127.0.0.1:" + web + "/"
			}
			if strings.Contains(output.String(), "address already in use") {
				break
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	require.FailNow(t, "the server did not start")
	return nil, ""
}

// A tab is a page in Chromium, with its logged problems and requests.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
	requests []string // URLs
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.FailNow(t, "Chromium is not installed: install Debian's package chromium")
	return ""
}

// open opens a page in a new browser until the test ends. At the end it checks that the page has
// logged no problem and has requested nothing from other hosts.
func open(t *testing.T, url string, width, height int64, theme string) *tab {
	t.Helper()
	b := launch(t)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Empty(t, b.problems)
		for _, address := range b.requests {
			assert.True(t, strings.HasPrefix(address, url) || address == "about:blank", "the page requests %s", address)
		}
	})
	_, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(b.ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	b.await(`document.getElementById("status").dataset.level !== "wait"`)
	return b
}

// launch starts a browser with an empty tab, until the test ends.
func launch(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(t.TempDir()))
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
			b.problems = append(b.problems, fmt.Sprintf("console: %v", event.Args))
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprint(event.ExceptionDetails.Text, " ",
			event.ExceptionDetails.URL, ":", event.ExceptionDetails.LineNumber))
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning {
			b.problems = append(b.problems, event.Entry.Text+" "+event.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// ask returns the value of a JavaScript expression.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

func (b *tab) text(id string) string {
	return ask[string](b, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// number returns the number that an element shows.
func (b *tab) number(id string) int64 {
	b.t.Helper()
	text := strings.ReplaceAll(b.text(id), ",", "")
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(b.t, err, "%s: %s", id, text)
	return n
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	last := ""
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) {
		now, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err != nil {
			last = err.Error()
		} else if now {
			return
		}
	}
	require.FailNow(b.t, "the expression did not become true", "%s %s", expression, last)
}

// load makes calls with known outcomes.
func load(t *testing.T, rdb *redis.Client) {
	t.Helper()
	do := func(times int, words ...any) {
		for range times {
			if err := rdb.Do(t.Context(), words...).Err(); err != nil {
				require.ErrorContains(t, err, "WRONGTYPE")
			}
		}
	}
	do(1, "RL.POLICY", "SET", "login", "SLIDE", 5, "1h")
	do(1, "RL.POLICY", "SET", "trial", "TOKEN", 2, 1, "1h", "SHADOW")
	do(8, "RL.CHECK", "ann", "login", "trial")
	do(12, "RL.SLIDE", "search:ann", 4, "1h")
	do(3, "RL.TOKEN", "bücher:<b>&", 1, 1, "1h")
	do(7, "SET", "text", "value")
	do(2, "HGET", "text", "field")
}

func info(t *testing.T, rdb *redis.Client) func(field string) string {
	t.Helper()
	text, err := rdb.Info(t.Context(), "everything").Result()
	require.NoError(t, err)
	return func(field string) string {
		match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(field) + `:(.*?)\r?$`).FindStringSubmatch(text)
		require.NotNil(t, match, field)
		return match[1]
	}
}

func TestPageShowsSameAsInfo(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t, "--maxmemory", "64mb")
	load(t, rdb)
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.getElementById("denied-total").textContent === "13"`)
	field := info(t, rdb)

	assert.Equal(t, field("decisions_admitted"), fmt.Sprint(b.number("admitted-total")))
	assert.Equal(t, field("decisions_denied"), fmt.Sprint(b.number("denied-total")))
	assert.Equal(t, field("maxclients"), fmt.Sprint(b.number("clients-max")))
	assert.Equal(t, field("connected_clients"), fmt.Sprint(b.number("clients")))
	assert.Equal(t, field("total_error_replies"), fmt.Sprint(b.number("errors-total")))
	assert.Equal(t, field("blocked_clients"), fmt.Sprint(b.number("waiting")))
	assert.Equal(t, field("rlserver_version"), b.text("version"))
	row := func(table, key string) string {
		return ask[string](b, fmt.Sprintf(`(({admitted, denied}) => "admitted=" + admitted + ",denied=" + denied)(
			document.querySelector('#%s tr[data-key="%s"]').dataset)`, table, key))
	}
	assert.Equal(t, field("rl_slide"), row("commands", "rl.slide"))
	assert.Equal(t, field("rl_check"), row("commands", "rl.check"))
	assert.Equal(t, field("policy_login"), "shadow=0,"+row("policies", "login"))
	assert.Equal(t, field("policy_trial"), "shadow=1,"+row("policies", "trial"))
	fact := func(id, term string) string {
		return ask[string](b, fmt.Sprintf(`[...document.querySelectorAll("#%s dt")]
			.find((dt) => dt.textContent === %q).nextElementSibling.textContent`, id, term))
	}
	assert.Equal(t, fmt.Sprintf("keys=%s,expires=%s", fact("keys", "Keys"), fact("keys", "With a deadline")),
		strings.TrimSuffix(field("db0"), ",avg_ttl=0"))
	assert.Equal(t, field("disk_state"), fact("disk", "State"))
	assert.True(t, strings.HasPrefix(fact("clock", "Clock"), field("clock_state")))
	assert.Equal(
		t,
		"SHADOW",
		ask[string](b, `document.querySelector('#policies tr[data-key="trial"] .badge').textContent`),
	)

	// the page is live: it shows later calls without a reload
	require.NoError(t, rdb.Do(t.Context(), "RL.SLIDE", "search:ann", 4, "1h").Err())
	b.await(`document.getElementById("denied-total").textContent === "14"`)
	b.await(`document.querySelectorAll("#plot-decisions path.line").length === 2`)
}

// A key's details open by mouse and by keyboard, and show the state of its limiter.
func TestKeyDialog(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	load(t, rdb)
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#denied li").length === 3`)
	names := ask[[]string](b, `[...document.querySelectorAll("#denied .name")].map((e) => e.textContent)`)
	assert.Equal(t, []string{"search:ann", "login:{ann}", "bücher:<b>&"}, names)
	b.do(chromedp.Click(chromedp.CSS("#denied li:first-child button")))
	b.await(`document.getElementById("key-state").textContent.startsWith("Admits again in 59 min")`)
	assert.Equal(t, "search:ann", b.text("key-name"))
	assert.Equal(t, "by SLIDE 4 1h", b.text("key-rule"))
	assert.EqualValues(t, 4, b.number("key-used"))
	assert.EqualValues(t, 0, b.number("key-remaining"))
	assert.Contains(t, b.text("key-facts"), "Denied8 times")

	// the dialog is live
	require.NoError(t, rdb.Do(t.Context(), "RL.REFUND", "search:ann", 3).Err())
	b.await(`document.getElementById("key-state").textContent === "Admits now"`)
	assert.EqualValues(t, 1, b.number("key-used"))
	require.NoError(t, rdb.Del(t.Context(), "search:ann").Err())
	b.await(`document.getElementById("key-used").textContent === "0"`)

	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById("key").open`)
	assert.Equal(t, "search:ann", ask[string](b, `document.activeElement.querySelector(".name").textContent`),
		"the focus returns to the button")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.await(`document.getElementById("key-rule").textContent === "by SLIDE 5 1h"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById("key").open`)

	// opening the dialog changes nothing
	var zcard int64
	zcard, err := rdb.ZCard(t.Context(), "login:{ann}").Result()
	require.NoError(t, err)
	assert.EqualValues(t, 5, zcard)
}

// All controls are reached with Tab, plots are read with the arrow keys, and the theme can be
// changed.
func TestPageByKeyboard(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	load(t, rdb)
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#denied li").length === 3`)
	b.await(`document.querySelectorAll("#plot-decisions path.line").length === 2`) // two points
	seen := map[string]bool{}
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		seen[ask[string](b, `document.activeElement.id || document.activeElement.className ||
			document.activeElement.getAttribute("aria-labelledby") || document.activeElement.tagName`)] = true
		if ask[string](b, `document.activeElement.id`) == "plot-decisions" {
			b.do(chromedp.KeyEvent(kb.ArrowLeft))
			assert.Regexp(t, `^\d\d:\d\d:\d\d  [\d.<]+ admitted, [\d.<]+ denied$`, b.text("decisions-at"))
		}
	}
	for _, stop := range []string{
		"skip", "theme", "plot-decisions", "scroll", "BUTTON",
		"plot-latency", "plot-calls", "plot-clients", "plot-memory",
	} {
		assert.True(t, seen[stop], "%s is not reached with Tab; these are: %v", stop, seen)
	}
	for _, theme := range []string{"light", "dark", ""} {
		b.do(chromedp.Click(chromedp.CSS("#theme")))
		assert.Equal(t, theme, ask[string](b, `document.documentElement.dataset.theme`))
	}
}

// contrast returns the lowest contrast between a text and its background.
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (color) => {
		canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
		.map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	let least = { ratio: 99 };
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
		if (!own || !e.checkVisibility() || e.closest("dialog:not([open]), script, noscript, .skip")) continue;
		let behind = e;
		while (behind && rgb(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
		const style = getComputedStyle(e), svg = e instanceof SVGElement;
		const a = luminance(rgb(svg ? style.fill : style.color));
		const b = luminance(rgb(getComputedStyle(behind ?? document.body).backgroundColor));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < least.ratio) least = { ratio, text: e.textContent.slice(0, 40), of: e.className + " " + e.tagName };
	}
	return least;
})()`

// The page is legible in both themes, fits the screen of a phone, and logs no error.
func TestPageThemesAndPhone(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	load(t, rdb)
	for _, screen := range []struct {
		name, theme   string
		width, height int64
	}{
		{"light", "light", 1400, 1000}, {"dark", "dark", 1400, 1000},
		{"phone", "light", 390, 844}, {"phone-dark", "dark", 360, 780},
	} {
		b := open(t, url, screen.width, screen.height, screen.theme)
		b.await(`document.querySelectorAll("#denied li").length === 3`)
		b.assertLegible(screen.name, screen.width)
	}
}

// assertLegible asserts that all texts stand out from their background, and that neither the page
// nor a dialog scrolls sideways in a window of this width. SCREENSHOTS, if set, is a directory that
// gets a picture of the page.
func (b *tab) assertLegible(name string, width int64) {
	b.t.Helper()
	least := ask[struct {
		Ratio    float64
		Text, Of string
	}](b, contrast)
	assert.GreaterOrEqual(b.t, least.Ratio, 4.5, "%s: %v", name, least)
	assert.LessOrEqual(b.t, ask[int64](b, "document.documentElement.scrollWidth"), width,
		"%s does not scroll sideways", name)
	assert.LessOrEqual(b.t, ask[int64](b, `Math.max(0, ...[...document.querySelectorAll("dialog[open]")]
		.map((d) => d.scrollWidth - d.clientWidth))`), int64(0), "%s: no dialog scrolls sideways", name)
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// With a password in the URL the browser uses it for all requests of the page.
func TestPageWithPassword(t *testing.T) {
	t.Parallel()
	_, url := serve(t, "--requirepass", "sesame")
	b := launch(t)
	b.do(chromedp.Navigate(strings.Replace(url, "//", "//default:sesame@", 1)))
	b.await(`document.getElementById("status").dataset.level === "ok"`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("show-banned").click()`))
	b.await(`document.getElementById("list-state").textContent === "No id is banned."`)
	assert.Empty(t, b.problems)
}

// A page above the limit on event streams shows a message, and gets events once another page is
// closed.
func TestPageAboveStreamLimit(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t, "--http-max-streams", "1")
	first, second := open(t, url, 1400, 1000, "light"), launch(t)
	second.do(chromedp.Navigate(url))
	second.await(`document.getElementById("lost").textContent.startsWith("The server refuses to send events")`)
	assert.False(t, ask[bool](second, `document.getElementById("main").checkVisibility()`),
		"nothing is said about the server before there is data")
	assert.NotContains(t, ask[string](second, `document.body.innerText`), "No command was called")
	first.do(chromedp.Navigate("about:blank"))
	load(t, rdb)
	second.await(
		`document.getElementById("lost").hidden && document.getElementById("denied-total").textContent === "13"`,
	)
}

// Policies and keys may be called like properties of all objects of JavaScript.
func TestNamesOfObjectProperties(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	names := []string{"__proto__", "constructor", "hasOwnProperty", "toString", "team/api:v1@eu"}
	for _, name := range names {
		require.NoError(t, rdb.Do(t.Context(), "RL.POLICY", "SET", name, "SLIDE", 1, "1h").Err())
		for range 3 {
			require.NoError(t, rdb.Do(t.Context(), "RL.CHECK", name, name).Err())
			require.NoError(t, rdb.Do(t.Context(), "RL.SLIDE", name, 1, "1h").Err())
		}
	}
	b := open(t, url, 1400, 1000, "light")
	rows := `[...document.querySelectorAll("#policies tbody tr")].map((r) => r.dataset.key + " " + r.dataset.denied)`
	var want []string
	for _, name := range names {
		want = append(want, name+" 2")
	}
	assert.ElementsMatch(t, want, ask[[]string](b, rows))
	for _, name := range names {
		require.NoError(t, rdb.Do(t.Context(), "RL.CHECK", name, name).Err())
	}
	b.await(`[...document.querySelectorAll("#policies tbody tr")].every((r) => r.dataset.denied === "3")`)
	b.await(`document.querySelectorAll("#plot-decisions path.line").length === 2`) // two points
	b.await(`document.querySelectorAll("#policies tbody td.spark svg").length === 5`)
	assert.Contains(t, ask[[]string](b, `[...document.querySelectorAll("#denied .name")].map((e) => e.textContent)`),
		"__proto__")
}

// The state of a key is shown however long its name is.
func TestLongKeyDialog(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	key := strings.Repeat("k", 20<<10)
	for range 3 {
		require.NoError(t, rdb.Do(t.Context(), "RL.SLIDE", key, 1, "1h").Err())
	}
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#denied li").length === 1`)
	b.do(chromedp.Click(chromedp.CSS("#denied li:first-child button")))
	b.await(`document.getElementById("key-state").textContent.startsWith("Admits again in 59 min")`)
	assert.Equal(t, strings.Repeat("k", 256)+"…", b.text("key-name"))
	assert.EqualValues(t, 1, b.number("key-used"))
}
