package command_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// golden holds the descriptions of the commands of Redis 7.0.15, one per line. Recorded by
// go test ./resp/command -run TestCommandsMatchRedis -record 127.0.0.1:6379
const golden = "redis-7.0.15.jsonl"

var record = flag.String("record", "", "address of a redis-server 7.0.15 to record "+golden+" from")

// description is what COMMAND INFO and COMMAND DOCS return for one command, without what may differ
// between servers.
type description struct {
	Name       string            `json:"name"`
	Arity      int64             `json:"arity"`
	Flags      []string          `json:"flags"`
	Range      [3]int64          `json:"range"`
	Categories []string          `json:"categories"`
	Tips       []string          `json:"tips"`
	Keys       []string          `json:"keys"`
	Syntax     string            `json:"syntax"`
	Kinds      []string          `json:"kinds"`
	Docs       map[string]string `json:"docs"`
}

// ask fetches the descriptions of all commands from the server at an address, in RESP3.
func ask(t *testing.T, addr string) map[string]description {
	send := commandtest.Dial(t, addr).Ask
	send("HELLO 3")
	all := make(map[string]description)
	docs := send("COMMAND DOCS").(map[string]any)
	for _, info := range send("COMMAND INFO").([]any) {
		addDescription(all, info.([]any), docs)
	}
	return all
}

func addDescription(all map[string]description, info []any, docs map[string]any) {
	c := description{
		Name:       info[0].(string),
		Arity:      info[1].(int64),
		Flags:      texts(info[2]),
		Categories: texts(info[6]),
		Tips:       texts(info[7]),
	}
	for i := range c.Range {
		c.Range[i] = info[3+i].(int64)
	}
	for _, spec := range info[8].([]any) {
		m := spec.(map[string]any)
		delete(m, "notes") // for readers of Redis' source
		text, _ := json.Marshal(m)
		c.Keys = append(c.Keys, string(text))
	}
	c.describe(docs[c.Name].(map[string]any))
	all[c.Name] = c
	subs, _ := docs[c.Name].(map[string]any)["subcommands"].(map[string]any)
	for _, sub := range info[9].([]any) {
		addDescription(all, sub.([]any), subs)
	}
}

func (c *description) describe(docs map[string]any) {
	c.Docs = make(map[string]string)
	for name, value := range docs {
		if text, ok := value.(string); ok {
			c.Docs[name] = text
		}
	}
	if words, ok := docs["doc_flags"]; ok {
		c.Docs["doc_flags"] = strings.Join(texts(words), " ")
	}
	if list, ok := docs["arguments"].([]any); ok {
		c.Syntax = command.Join(c.tree(list), " ")
	}
}

func (c *description) tree(list []any) (args []command.Argument) {
	for _, each := range list {
		m := each.(map[string]any)
		a := command.Argument{Name: m["name"].(string), Kind: m["type"].(string)}
		a.Token, _ = m["token"].(string)
		if flags, ok := m["flags"]; ok {
			for _, word := range texts(flags) {
				a.Optional = a.Optional || word == "optional"
				a.Multiple = a.Multiple || word == "multiple"
				a.Again = a.Again || word == "multiple_token"
			}
		}
		if parts, ok := m["arguments"].([]any); ok {
			a.Parts = c.tree(parts)
		} else if a.Kind != command.PureToken {
			kind := a.Name + " " + a.Kind
			if index, ok := m["key_spec_index"]; ok {
				kind += fmt.Sprint(" ", index)
			}
			c.Kinds = append(c.Kinds, kind)
		}
		args = append(args, a)
	}
	return args
}

func texts(value any) (list []string) {
	for _, v := range value.([]any) {
		list = append(list, v.(string))
	}
	slices.Sort(list)
	return list
}

func TestCommandsMatchRedis(t *testing.T) {
	if *record != "" {
		recordGolden(t)
	}
	file, err := os.ReadFile(golden)
	require.NoError(t, err)
	redis := make(map[string]description)
	for line := range bytes.Lines(file) {
		var c description
		require.NoError(t, json.Unmarshal(line, &c))
		redis[c.Name] = c
	}
	ours := ask(t, resptest.Start(t, config.Defaults{}).Address)
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		want, known := redis[name]
		if !known {
			continue // not in Redis 7.0.15
		}
		t.Run(name, func(t *testing.T) { compare(t, want, ours[name]) })
	}
}

func recordGolden(t *testing.T) {
	var file bytes.Buffer
	all := ask(t, *record)
	encoder := json.NewEncoder(&file)
	encoder.SetEscapeHTML(false)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		require.NoError(t, encoder.Encode(all[name]))
	}
	require.NoError(t, os.WriteFile(golden, file.Bytes(), 0o644))
}

// deviations maps a command and field that differ from Redis 7.0.15 to the reason.
var deviations = map[string]string{
	"append docs": "the complexity describes how memory grows here",
	"client|kill syntax": "the real syntax, which Redis' generator does not produce: any options, or " +
		"the old form",
	"client|kill kinds":              "NAME and MAXAGE are from later versions",
	"client|list syntax":             "the filters of CLIENT KILL are from later versions",
	"client|list kinds":              "the filters of CLIENT KILL are from later versions",
	"hscan syntax":                   "NOVALUES is from Redis 7.4",
	"command|getkeys syntax":         "Redis documents it from 7.2 on",
	"command|getkeys kinds":          "Redis documents it from 7.2 on",
	"command|getkeysandflags syntax": "Redis documents it from 7.2 on",
	"command|getkeysandflags kinds":  "Redis documents it from 7.2 on",
	"zrank arity":                    "WITHSCORE is from Redis 7.2",
	"zrank syntax":                   "WITHSCORE is from Redis 7.2",
	"zrevrank arity":                 "WITHSCORE is from Redis 7.2",
	"zrevrank syntax":                "WITHSCORE is from Redis 7.2",
}

func compare(t *testing.T, redis, ours description) {
	for _, field := range []struct {
		name       string
		want, have any
	}{
		{"arity", redis.Arity, ours.Arity}, {"flags", redis.Flags, ours.Flags}, {"range", redis.Range, ours.Range},
		{"categories", redis.Categories, ours.Categories}, {"tips", redis.Tips, ours.Tips},
		{"keys", redis.Keys, ours.Keys},
		{"syntax", redis.Syntax, ours.Syntax}, {"kinds", redis.Kinds, ours.Kinds}, {"docs", redis.Docs, ours.Docs},
	} {
		reason := deviations[redis.Name+" "+field.name]
		if reason == "" {
			assert.Equal(t, field.want, field.have, field.name)
		} else {
			const same = "%s is as in Redis, but listed as a deviation: %s"
			require.NotEqual(t, field.want, field.have, same, field.name, reason)
		}
	}
}

func TestHelp(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	assert.Equal(
		t,
		"*5 +FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are: +FLUSH [ASYNC | SYNC] +    Deleting "+
			"all functions. "+
			"+HELP +    Prints this help.",
		c.Do("FUNCTION HELP"),
	)
	for _, each := range command.Table.Sorted() {
		if each.Name == "cluster" { // as in Redis
			assert.Equal(t, "-ERR This instance has cluster support disabled", c.Do("CLUSTER HELP"))
			continue
		}
		if len(each.Subs) > 0 && each.Name != "debug" {
			assert.Regexp(
				t,
				`^\*\d+ \+`+strings.ToUpper(each.Name)+` .* \+HELP \+    Prints this help\.$`,
				c.Do(each.Name+" HELP"),
			)
		}
	}
}

func TestCommandCommand(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"COMMAND INFO nope", "*1 $-1"},
		{"COMMAND DOCS nope", "*0"},
		{"COMMAND COUNT x", "-ERR wrong number of arguments for 'command|count' command"},
		{"COMMAND NOPE", "-ERR unknown subcommand 'NOPE'. Try COMMAND HELP."},
		{
			"COMMAND INFO get",
			"*1 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 $5 flags *2 +RO " +
				"+access $12 begin_search " +
				"*4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey " +
				":0 $7 keystep :1 $5 limit :0 *0",
		},
		{
			"COMMAND INFO CLIENT|ID",
			"*1 *10 $9 client|id :2 *3 +noscript +loading +stale :0 :0 :0 *2 +@slow +@connection *0 *0 *0",
		},
		{
			"COMMAND DOCS select",
			"*2 $6 select *10 $7 summary $55 Change the selected database for the current connection…",
		},
		{"COMMAND GETKEYS GET k", "*1 $1 k"},
		{"COMMAND GETKEYS MSET a 1 b 2", "*2 $1 a $1 b"},
		{"COMMAND GETKEYS MEMORY USAGE k", "*1 $1 k"},
		{"COMMAND GETKEYS ZUNIONSTORE d 2 a b", "*3 $1 d $1 a $1 b"},
		{"COMMAND GETKEYS ZUNIONSTORE d 3 a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS ZUNIONSTORE d 0 a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS ZUNIONSTORE d x a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS GET k x", "-ERR Invalid number of arguments specified for command"},
		{"COMMAND GETKEYS NOPE x", "-ERR Invalid command specified"},
		{"COMMAND GETKEYS PING x", "-ERR The command has no key arguments"},
		{"COMMAND GETKEYS GET", "-ERR wrong number of arguments for 'command|getkeys' command"},
		{"COMMAND GETKEYSANDFLAGS COPY a b", "*2 *2 $1 a *2 +RO +access *2 $1 b *2 +OW +update"},
		{"COMMAND LIST FILTERBY PATTERN hgeta*", "*1 $7 hgetall"},
		{"COMMAND LIST FILTERBY pattern client|i[a-d]", "*1 $9 client|id"},
		{"COMMAND LIST FILTERBY MODULE json", "*0"},
		{"COMMAND LIST FILTERBY ACLCAT nope", "*0"},
		{"COMMAND LIST FILTERBY NOPE x", "-ERR syntax error"},
		{"COMMAND LIST FILTERBY PATTERN", "-ERR syntax error"},
		{"COMMAND LIST nope", "-ERR syntax error"},
	})
}

func TestCommandListsAgree(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	count := len(command.Table)
	assert.Equal(t, ":"+strconv.Itoa(count), c.Do("COMMAND COUNT"))
	assert.True(t, strings.HasPrefix(c.Do("COMMAND"), "*"+strconv.Itoa(count)+" "))
	assert.True(t, strings.HasPrefix(c.Do("COMMAND INFO"), "*"+strconv.Itoa(count)+" "))
	assert.True(t, strings.HasPrefix(c.Do("COMMAND DOCS"), "*"+strconv.Itoa(2*count)+" "))
	assert.True(t, strings.HasPrefix(c.Do("COMMAND LIST FILTERBY PATTERN hgetall"), "*1 "))
	limiters := c.Do("COMMAND LIST FILTERBY ACLCAT ratelimit")
	for _, each := range command.Table.Sorted() {
		assert.Equal(
			t,
			each.Group == "ratelimit" && each.Run != nil,
			slices.Contains(strings.Fields(limiters), each.Name),
			each.Name,
		)
	}
}
