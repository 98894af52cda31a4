package keys_test

import (
	"testing"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// OBJECT FREQ and OBJECT IDLETIME reply under the policies that keep these figures.
func TestAccessFrequency(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"maxmemory-policy": "allkeys-lfu"}).Dial()
	c.Check([]resptest.Answer{
		{"SET k v", "+OK"},
		{"OBJECT FREQ k", ":5"},
		{"OBJECT FREQ nope", "$-1"},
		{"OBJECT IDLETIME nope", "$-1"},
		{
			"OBJECT IDLETIME k",
			"-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching " +
				"between policies at runtime LRU and LFU data will take some time to adjust.",
		},
		{"GET k", "$1 v"},
		{"OBJECT FREQ k", ":6"},
		{"CONFIG SET maxmemory-policy allkeys-lru", "+OK"},
		{
			"OBJECT FREQ k",
			"-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
				"switching between policies at runtime LRU and LFU data will take some time to adjust.",
		},
		{"GET k", "$1 v"},
		{"OBJECT IDLETIME k", ":0"},
	})
}
