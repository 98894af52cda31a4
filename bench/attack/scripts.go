package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

func init() {
	for _, s := range []struct{ name, text string }{
		{"an endless script", "while true do end"},
		{"an endless script with pcall", "while true do pcall(function() while true do end end) end"},
		{"a script with string.rep", "return string.rep('x', 1e9)"},
		{"a script with doubling strings", "local s = 'x' while true do s = s .. s end"},
		{"a script with a slow pattern", "return string.gsub(string.rep('a', 200000), '.-b', '')"},
		{"a script with growing tables", "local t = {} while true do t[#t + 1] = {#t} end"},
		{"a recursive script", "local function f(n) return 1 + f(n + 1) end return f(1)"},
		{"a script with cyclic tables", "local t = {} t[1] = t return t"},
		{"a script of 1 MB", "local x = 0 " + strings.Repeat("x = x + 1 ", 100_000) + "return x"},
	} {
		attacks = append(attacks, attack{name: s.name, limiters: 1000, recovers: true,
			flags: []string{"--lua-time-limit", "100"}, run: hostileScript(s.text)})
	}
	attacks = append(attacks, attack{name: "endless different scripts", limiters: 1000, run: manyScripts})
}

// hostileScript runs a script on 16 connections again and again, while another one ends those that
// take too long.
func hostileScript(text string) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		killed := 0
		killer, err := t.login()
		if err != nil {
			return "", err
		}
		defer killer.Close()
		notes := make(chan string, 16)
		for i := range cap(notes) {
			go func() {
				note, _ := repeat(fixed("EVAL", text, "1", fmt.Sprint("hostile", i)))(ctx, t)
				notes <- note
			}()
		}
		note := ""
		for ended := 0; ended < cap(notes); {
			select {
			case note = <-notes:
				ended++
			case <-time.After(20 * time.Millisecond):
				if answer, err := killer.call("SCRIPT", "KILL"); err == nil && strings.HasPrefix(answer, "+OK") {
					killed++
				}
			}
		}
		return fmt.Sprintf("%d times SCRIPT KILL; %s", killed, note), nil
	}
}

// manyScripts sends scripts of which each is another one.
func manyScripts(ctx context.Context, t *target) (string, error) {
	c, err := t.login()
	if err != nil {
		return "", err
	}
	defer c.Close()
	n := 0
	for ; ctx.Err() == nil; n++ {
		if _, err := c.call("EVAL", fmt.Sprintf("return redis.call('INCRBY', KEYS[1], %d)", n), "1", "k"); err != nil {
			return "", err
		}
	}
	info, err := c.call("INFO", "memory")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if count, found := strings.CutPrefix(line, "number_of_cached_scripts:"); found {
			return fmt.Sprintf("%d scripts, of which %s are kept", n, strings.TrimSpace(count)), nil
		}
	}
	return fmt.Sprint(n, " scripts"), nil
}
