package acl

import (
	_ "embed" // the list of commands
	"slices"
	"strings"
)

// redisText has a line for each command of Redis 7.0.15: its name, its categories and its flag
// no_auth. TestRecordRules writes it.
//
//go:embed redis_commands.txt
var redisText string

// redisCommands returns the commands of Redis 7.0.15, sorted by name.
func redisCommands() (list []Command) {
	for line := range strings.Lines(redisText) {
		words := strings.Fields(line)
		list = append(list, Command{Name: words[0], Categories: words[1:], Open: slices.Contains(words, "no_auth")})
	}
	return list
}

// WithRedis returns the commands of a server and, after them, those that only Redis 7.0.15 has:
// rules may name them, and categories with them, such as -publish and -@geo.
func WithRedis(commands []Command) (all []Command) {
	at := make(map[string]int)
	for i, c := range commands {
		c.Own = true
		at[c.Name], all = i, append(all, c)
	}
	for _, c := range redisCommands() {
		if i, here := at[c.Name]; here {
			all[i].Own = false
			continue
		}
		c.Absent = true
		all = append(all, c)
	}
	return all
}
