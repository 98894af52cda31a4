package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// customers makes calls of some ids: ann is banned by login, gold has numbers of its own.
func customers(t *testing.T, rdb *redis.Client) {
	t.Helper()
	do := func(words ...any) { require.NoError(t, rdb.Do(t.Context(), words...).Err()) }
	do("RL.POLICY", "SET", "login", "SLIDE", 3, "1h", "BAN", 3, "5m", "1h")
	do("RL.POLICY", "SET", "tokens", "TOKEN", 100000, 100000, "1m")
	do("RL.POLICY", "SET", "login", "SLIDE", 30, "1h", "FOR", "gold")
	for range 7 {
		do("RL.CHECK", "ann", "login")
	}
	do("RL.CHECK", "gold", "login", "tokens", "COST", 2, 5000)
	do("RL.CHECK", "bob", "login", "tokens", "COST", 1, 4000, "HOLD", "1h", "ID", "call-1")
}

// rows returns the cells of a table, row by row.
func (b *tab) rows(table string) [][]string {
	return ask[[][]string](b, fmt.Sprintf(`[...document.querySelectorAll("#%s tbody tr")]
		.map((r) => [...r.children].map((c) => c.textContent))`, table))
}

func (b *tab) click(selector string) { b.do(chromedp.Click(chromedp.CSS(selector))) }

// awaitRows waits until a table has a number of rows.
func (b *tab) awaitRows(table string, n int) {
	b.await(fmt.Sprintf(`document.querySelectorAll("#%s tbody tr").length === %d`, table, n))
}

// A policy shows its ids, those with numbers of their own, and those that are banned; an id shows
// what it has used of each policy. A ban is lifted and an id reset by two presses of a button.
func TestCustomers(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	customers(t, rdb)
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#policies tbody tr").length === 2`)

	b.click(`#policies tr[data-key="login"] .link`)
	b.awaitRows("rows", 3)
	assert.ElementsMatch(t, [][]string{{"ann", "3 of 3", "0"}, {"gold", "2 of 30", "0"}, {"bob", "1 of 3", "1"}},
		b.rows("rows"))
	b.await(`document.getElementById("list-state").textContent === "3 ids"`)
	b.do(chromedp.SendKeys(chromedp.CSS("#list-match"), "*o*\r"))
	b.awaitRows("rows", 2)
	b.click(`#list-tabs [data-kind="overrides"]`)
	b.await(`document.querySelector("#rows tbody td")?.textContent === "SLIDE 30 1h"`)
	assert.Equal(t, [][]string{{"gold", "SLIDE 30 1h"}}, b.rows("rows"))

	// an id of the list, on top of it
	b.click("#rows .link")
	b.awaitRows("usage", 2)
	assert.Equal(t, []string{"login", "now", "30", "28"}, b.rows("usage")[0][:4])
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById("customer").open && document.getElementById("list").open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById("list").open`)

	b.click("#show-banned")
	b.awaitRows("rows", 1)
	banned := b.rows("rows")[0]
	assert.Equal(t, []string{"ann", "login"}, banned[:2])
	assert.Regexp(t, `^\d min( \d+ s)?$`, banned[2])
	b.do(chromedp.KeyEvent(kb.Escape))

	b.do(chromedp.SendKeys(chromedp.CSS("#find-id"), "ann\r"))
	b.awaitRows("usage", 2)
	b.click(`#usage tr[data-key="login"] [aria-label="Unban login"]`)
	assert.Len(t, rdb.Do(t.Context(), "RL.BANNED").Val().([]any)[1], 1, "the first press asks")
	b.click(`#usage tr[data-key="login"] [aria-label="Unban login"]`)
	b.await(`document.getElementById("customer-state").textContent === "The ban by login is lifted."`)
	assert.Empty(t, rdb.Do(t.Context(), "RL.BANNED").Val().([]any)[1])
	b.await(`document.querySelector('#usage tr[data-key="login"] [data-name="ban"]').textContent === "none"`)
	for range 2 {
		b.click(`#usage tr[data-key="login"] [aria-label="Reset login"]`)
	}
	b.await(`document.querySelector('#usage tr[data-key="login"] [data-name="remaining"]').textContent === "3"`)
	assert.Equal(t, "login is as if it had never been used.", b.text("customer-state"))
	assert.Zero(t, rdb.Exists(t.Context(), "login:{ann}").Val())
	b.do(chromedp.KeyEvent(kb.Escape))

	// other databases can be chosen once they have keys
	assert.False(t, ask[bool](b, `document.getElementById("find-in").checkVisibility()`))
	third := redis.NewClient(&redis.Options{Addr: rdb.Options().Addr, DB: 3, Protocol: 2, DisableIdentity: true})
	defer third.Close()
	require.NoError(t, third.Do(t.Context(), "RL.CHECK", "zoe", "login").Err())
	b.await(`document.getElementById("find-in").checkVisibility()`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("find-db").value = "3"`))
	b.click(`#policies tr[data-key="login"] .link`)
	b.awaitRows("rows", 1)
	assert.Equal(t, [][]string{{"zoe", "1 of 3", "0"}}, b.rows("rows"))
	b.click("#rows .link")
	b.awaitRows("usage", 2)
	assert.Equal(t, []string{"login", "now", "3", "2"}, b.rows("usage")[0][:4])
}

// A dialog that is opened again before the page has been told that it closed shows what was asked
// for last.
func TestADialogOpensAgainAtOnce(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	customers(t, rdb)
	require.NoError(t, rdb.Do(t.Context(), "RL.POLICY", "SET", "seats", "SLIDE", 5, "1h").Err())
	require.NoError(t, rdb.Do(t.Context(), "RL.CHECK", "zoe", "seats").Err())
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#policies tbody tr").length === 3`)
	again := func(dialog, opener string) {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.getElementById(%q).close();
			document.querySelector(%q).click()`, dialog, opener)))
	}
	b.click(`#policies tr[data-key="login"] .link`)
	b.awaitRows("rows", 3)
	again("list", `#policies tr[data-key="seats"] .link`)
	b.await(`document.getElementById("list-state").textContent === "1 id"`)
	assert.Equal(t, "seats", b.text("list-name"))
	b.click("#rows .link")
	b.awaitRows("usage", 3)
	again("customer", "#rows .link")
	b.awaitRows("usage", 3)
}

// What is looked at is asked for once, although the times that are left count down.
func TestAListIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	customers(t, rdb)
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.getElementById("customers").checkVisibility()`)
	b.click("#show-banned")
	b.awaitRows("rows", 1)
	calls := func() (n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, address := range b.requests {
			if !strings.HasSuffix(address, "/api/history") && !strings.HasSuffix(address, "/api/events") {
				n++
			}
		}
		return n
	}
	before := calls()
	for range 2 {
		left := b.rows("rows")[0][2]
		b.await(fmt.Sprintf(`document.querySelector('#rows [data-name="ban"]').textContent !== %q`, left))
	}
	assert.Equal(t, before, calls())
}

// Ids may be any bytes of any length: those with markup, those like properties of all objects of
// JavaScript, those that are no text, and those of 64 KB.
func TestStrangeIDs(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	require.NoError(t, rdb.Do(t.Context(), "RL.POLICY", "SET", "__proto__", "SLIDE", 3, "1h").Err())
	ids := []string{"<img src=x onerror=alert(1)>", "__proto__", "constructor", "\xff\xfe", "\xed\xa0\x80", "a\nb",
		strings.Repeat("ü", 32<<10)}
	for i, id := range ids {
		for range i % 3 {
			require.NoError(t, rdb.Do(t.Context(), "RL.CHECK", id, "__proto__").Err())
		}
		require.NoError(t, rdb.Do(t.Context(), "RL.CHECK", id, "__proto__").Err())
	}
	b := open(t, url, 1400, 1000, "light")
	b.await(`document.querySelectorAll("#policies tbody tr").length === 1`)
	b.click("#policies .link")
	b.awaitRows("rows", len(ids))
	want := []string{ids[0], "__proto__", "constructor", `"\xff\xfe"`, `"\xed\xa0\x80"`, `"a\nb"`,
		strings.Repeat("ü", 128) + "…"}
	var got []string
	for _, row := range b.rows("rows") {
		got = append(got, row[0])
	}
	assert.ElementsMatch(t, want, got)
	for i, name := range want {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`[...document.querySelectorAll("#rows .link")].find((e) => e.textContent === %q).click()`, name)))
		b.awaitRows("usage", 1)
		assert.Equal(t, []string{"__proto__", "3", fmt.Sprint(2 - i%3)},
			append(b.rows("usage")[0][:1], b.rows("usage")[0][2:4]...), name)
		assert.Equal(t, name, b.text("customer-name"))
		b.do(chromedp.KeyEvent(kb.Escape))
	}
	assert.False(t, ask[bool](b, `document.querySelector("img") !== null`))

	// what is typed has to be text
	b.do(chromedp.KeyEvent(kb.Escape))
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("find-id").value = "a\ud800"`))
	b.click("#find [type=submit]")
	assert.Equal(t, "This text has half a character.",
		ask[string](b, `document.getElementById("find-id").validationMessage`))
	assert.False(t, ask[bool](b, `document.getElementById("customer").open`))
}

// The dialogs are legible in both themes and fit the screen of a phone.
func TestCustomersThemesAndPhone(t *testing.T) {
	t.Parallel()
	rdb, url := serve(t)
	customers(t, rdb)
	for _, screen := range []struct {
		name, theme   string
		width, height int64
	}{
		{"ids", "light", 1400, 1000}, {"ids-dark", "dark", 1400, 1000}, {"ids-phone", "light", 390, 844},
		{"ids-phone-dark", "dark", 360, 780},
	} {
		b := open(t, url, screen.width, screen.height, screen.theme)
		b.await(`document.querySelectorAll("#policies tbody tr").length === 2`)
		legible := func(what string) { b.assertLegible(screen.name+"-"+what, screen.width) }
		legible("card")
		b.click(`#policies tr[data-key="login"] .link`)
		b.awaitRows("rows", 3)
		legible("list")
		b.do(chromedp.KeyEvent(kb.Escape))
		b.click("#show-banned")
		b.awaitRows("rows", 1)
		legible("banned")
		b.click("#rows .link")
		b.awaitRows("usage", 2)
		b.click(`#usage [aria-label="Unban login"]`)
		legible("id")
	}
}
