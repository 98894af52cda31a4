package integration

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mayImport lists the imports that are allowed for each package: packages of this module, and
// others beyond the standard library.
var mayImport = map[string]struct{ ours, others []string }{
	"rlserver/cluster": {
		ours: []string{
			"rlserver/internal/clock", "rlserver/cluster/group", "rlserver/cluster/mux",
			"rlserver/cluster/overview",
			"rlserver/cluster/slot", "rlserver/cluster/wanted",
			"rlserver/engine", "rlserver/engine/policy", "rlserver/engine/rule", "rlserver/internal/stats",
			"rlserver/internal/smallfile",
		},
		others: []string{"github.com/hashicorp/raft-wal/types"}, // disks of tests
	},
	"rlserver/cluster/group": {
		ours: []string{
			"rlserver/internal/clock", "rlserver/cluster/broken", "rlserver/cluster/overview",
			"rlserver/cluster/slot", "rlserver/engine",
			"rlserver/engine/effect", "rlserver/engine/policy",
			"rlserver/persistence",
		},
		others: []string{
			"github.com/hashicorp/go-hclog", "github.com/hashicorp/raft", "github.com/hashicorp/raft-wal",
			"github.com/hashicorp/raft-wal/fs", "github.com/hashicorp/raft-wal/metadb",
			"github.com/hashicorp/raft-wal/segment", "github.com/hashicorp/raft-wal/types",
		},
	},
	"rlserver/cluster/broken":      {},
	"rlserver/cluster/clustertest": {others: []string{"github.com/anishathalye/porcupine"}},
	"rlserver/cluster/mux":         {ours: []string{"rlserver/internal/clock", "rlserver/internal/listen"}},
	"rlserver/cluster/overview":    {ours: []string{"rlserver/cluster/slot", "rlserver/internal/stats"}},
	"rlserver/cluster/saving":      {ours: []string{"rlserver/internal/storage"}},
	"rlserver/cluster/slot":        {},
	"rlserver/cluster/wanted":      {},
	"rlserver/cmd/rlserver": {
		ours: []string{
			"rlserver/cluster",
			"rlserver/cluster/group",
			"rlserver/cluster/overview",
			"rlserver/cluster/saving",
			"rlserver/cluster/slot",
			"rlserver/internal/storage",
			"rlserver/internal/acl",
			"rlserver/resp",
			"rlserver/resp/command",
			"rlserver/resp/config",
			"rlserver/resp/local", "rlserver/resp/pubsub", "rlserver/resp/wire",
			"rlserver/internal/certs",
			"rlserver/internal/clock", "rlserver/internal/listen",
			"rlserver/engine", "rlserver/engine/background",
			"rlserver/engine/policy",
			"rlserver/persistence",
			"rlserver/internal/importer",
			"rlserver/internal/progress",
			"rlserver/internal/policyfile",
			"rlserver/internal/process",
			"rlserver/internal/smallfile",
			"rlserver/web", "rlserver/engine/denials", "rlserver/engine/limit", "rlserver/engine/object",
			"rlserver/engine/rule",
		},
		others: []string{"github.com/alecthomas/kong", "github.com/coreos/go-systemd/v22/daemon"},
	},
	"rlserver/internal/policyfile": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/limit", "rlserver/engine/policy", "rlserver/engine/rule",
			"rlserver/internal/smallfile",
		},
		others: []string{"go.yaml.in/yaml/v3"},
	},
	"rlserver/internal/importer": {
		ours:   []string{"rlserver/engine/limit", "rlserver/internal/progress", "rlserver/internal/smallfile"},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	"rlserver/internal/smallfile": {},
	"rlserver/internal/storage":   {},
	"rlserver/internal/progress": {
		others: []string{"github.com/schollz/progressbar/v3", "golang.org/x/term"},
	},
	"rlserver/web": {
		ours: []string{"rlserver/cluster/overview", "rlserver/internal/logins", "rlserver/internal/stats"},
		others: []string{
			"github.com/prometheus/client_golang/prometheus",
			"github.com/prometheus/client_golang/prometheus/collectors",
			"github.com/prometheus/client_golang/prometheus/promhttp",
		},
	},
	"rlserver/internal/listen": {},
	"rlserver/internal/logins": {
		ours: []string{
			"rlserver/internal/clock", "rlserver/engine/limit",
		},
	},
	"rlserver/internal/certs": {ours: []string{"rlserver/internal/smallfile"}},
	"rlserver/internal/acl":   {ours: []string{"rlserver/internal/smallfile"}},
	"rlserver/resp": {
		ours: []string{
			"rlserver/resp/tracking",
			"rlserver/resp/events", "rlserver/resp/notify",
			"rlserver/cluster/overview", "rlserver/cluster/slot",
			"rlserver/resp/commands/caching", "rlserver/resp/commands/clustering",
			"rlserver/internal/acl", "rlserver/internal/certs", "rlserver/internal/clock",
			"rlserver/engine", "rlserver/engine/eviction",
			"rlserver/internal/storage",
			"rlserver/resp/clientfilter", "rlserver/resp/clientmem", "rlserver/resp/command", "rlserver/resp/config",
			"rlserver/resp/glob",
			"rlserver/internal/grammar", "rlserver/internal/listen", "rlserver/internal/logins",
			"rlserver/resp/forward",
			"rlserver/resp/waitqueue", "rlserver/resp/wire",
			"rlserver/resp/diagnostics", "rlserver/resp/commands/diagnose",
			"rlserver/resp/executor", "rlserver/resp/ports", "rlserver/resp/pubsub", "rlserver/resp/pubsub/relay",
			"rlserver/resp/commands/pubsub", "rlserver/resp/commands/scripting", "rlserver/resp/lua",
			"rlserver/resp/commands/hashes", "rlserver/resp/commands/keys",
			"rlserver/resp/commands/limits", "rlserver/resp/commands/lists",
			"rlserver/resp/commands/server", "rlserver/resp/commands/sets", "rlserver/resp/commands/str",
			"rlserver/resp/commands/users",
			"rlserver/resp/commands/zsets", "rlserver/internal/stats",
		},
		others: []string{"github.com/tidwall/redcon"},
	},
	"rlserver/internal/grammar": {},
	"rlserver/engine/lock":      {},
	"rlserver/engine/script":    {ours: []string{"rlserver/engine/effect"}},
	"rlserver/resp/glob":        {ours: []string{"rlserver/engine"}},
	"rlserver/resp/clientfilter": {
		ours: []string{
			"rlserver/engine", "rlserver/internal/acl", "rlserver/internal/grammar", "rlserver/resp/command",
		},
	},
	"rlserver/resp/clientmem": {},
	"rlserver/resp/ports": {
		ours: []string{
			"rlserver/engine", "rlserver/internal/certs", "rlserver/internal/clock", "rlserver/internal/listen",
			"rlserver/resp/config",
		},
		others: []string{"github.com/tidwall/redcon"},
	},
	"rlserver/resp/pubsub": {
		ours: []string{
			"rlserver/engine", "rlserver/resp/config", "rlserver/resp/glob", "rlserver/resp/pubsub/relay",
			"rlserver/resp/wire",
		},
	},
	"rlserver/resp/pubsub/relay": {ours: []string{"rlserver/resp/wire"}},
	"rlserver/resp/commands/pubsub": {
		ours: []string{"rlserver/internal/acl", "rlserver/resp/command", "rlserver/resp/pubsub"},
	},
	"rlserver/engine/change": {ours: []string{"rlserver/engine/effect"}},
	"rlserver/resp/events": {
		ours: []string{"rlserver/engine/change", "rlserver/engine/effect", "rlserver/internal/grammar"},
	},
	"rlserver/resp/tracking": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/change", "rlserver/engine/effect", "rlserver/resp/config",
			"rlserver/resp/pubsub", "rlserver/resp/wire",
		},
	},
	"rlserver/resp/notify": {
		ours: []string{
			"rlserver/resp/tracking", "rlserver/engine", "rlserver/engine/change",
			"rlserver/resp/events", "rlserver/resp/pubsub"},
	},
	"rlserver/resp/config": {
		ours: []string{
			"rlserver/engine/change",
			"rlserver/internal/acl", "rlserver/internal/certs", "rlserver/internal/listen", "rlserver/internal/logins",
			"rlserver/internal/storage",
			"rlserver/engine", "rlserver/engine/eviction", "rlserver/engine/limit", "rlserver/engine/object",
			"rlserver/resp/config/conffile", "rlserver/internal/grammar",
			"rlserver/internal/smallfile",
		},
	},
	"rlserver/resp/forward": {
		ours: []string{
			"rlserver/cluster/overview", "rlserver/resp/wire",
		},
	},
	"rlserver/resp/local": {
		ours: []string{"rlserver/internal/listen", "rlserver/resp/forward", "rlserver/resp/wire"},
	},
	"rlserver/resp/config/conffile": {ours: []string{"rlserver/internal/grammar", "rlserver/internal/smallfile"}},
	"rlserver/resp/wire": {
		ours: []string{
			"rlserver/engine", "rlserver/resp/clientmem", "rlserver/resp/config",
			"rlserver/internal/grammar",
			"rlserver/internal/largecopy",
		},
	},
	"rlserver/resp/command": {
		ours: []string{
			"rlserver/resp/tracking",
			"rlserver/internal/acl", "rlserver/internal/clock", "rlserver/cluster/overview",
			"rlserver/cluster/slot",
			"rlserver/engine", "rlserver/engine/limit", "rlserver/engine/object",
			"rlserver/engine/policy", "rlserver/engine/reserve", "rlserver/engine/rule",
			"rlserver/resp/config", "rlserver/resp/diagnostics", "rlserver/resp/glob", "rlserver/resp/lua",
			"rlserver/resp/pubsub",
			"rlserver/internal/grammar",
			"rlserver/resp/wire", "rlserver/internal/stats", "rlserver/internal/storage",
		},
	},
	"rlserver/resp/lua": {
		ours: []string{
			"rlserver/resp/lua/compiler", "rlserver/resp/lua/interior", "rlserver/resp/lua/number",
			"rlserver/resp/lua/pattern", "rlserver/internal/largecopy",
		},
		others: []string{"github.com/yuin/gopher-lua"},
	},
	"rlserver/resp/lua/pattern": {},
	"rlserver/resp/lua/number":  {},
	"rlserver/resp/lua/interior": {
		ours:   []string{"rlserver/resp/lua/compiler"},
		others: []string{"github.com/yuin/gopher-lua"},
	},
	"rlserver/resp/lua/compiler": {
		ours: []string{"rlserver/resp/lua/number"},
		others: []string{
			"github.com/yuin/gopher-lua", "github.com/yuin/gopher-lua/ast", "github.com/yuin/gopher-lua/parse",
		},
	},
	"rlserver/resp/commands/scripting": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/script", "rlserver/internal/acl", "rlserver/resp/command",
			"rlserver/resp/diagnostics", "rlserver/resp/executor", "rlserver/resp/lua", "rlserver/resp/wire",
		},
		others: []string{"github.com/yuin/gopher-lua"},
	},
	"rlserver/resp/command/commandtest": {
		ours: []string{
			"rlserver/internal/clock", "rlserver/internal/listen", "rlserver/engine", "rlserver/engine/effect",
			"rlserver/resp/command",
			"rlserver/resp/config",
			"rlserver/resp/executor", "rlserver/resp/pubsub", "rlserver/resp/tracking",
			"rlserver/internal/stats", "rlserver/internal/storage",
		},
		others: []string{"github.com/stretchr/testify/assert", "github.com/stretchr/testify/require"},
	},
	"rlserver/resp/resptest": {
		ours: []string{
			"rlserver/engine", "rlserver/resp", "rlserver/resp/command/commandtest", "rlserver/resp/config",
			"rlserver/resp/waitqueue",
		},
		others: []string{"github.com/stretchr/testify/assert", "github.com/stretchr/testify/require"},
	},
	"rlserver/resp/executor": {
		ours: []string{
			"rlserver/engine/change", "rlserver/resp/events",
			"rlserver/internal/acl", "rlserver/engine", "rlserver/resp/command",
			"rlserver/resp/diagnostics",
			"rlserver/resp/wire", "rlserver/internal/stats",
		},
	},
	"rlserver/resp/waitqueue": {
		ours: []string{
			"rlserver/internal/clock", "rlserver/engine", "rlserver/resp/command",
			"rlserver/resp/executor",
			"rlserver/resp/wire",
		},
	},
	"rlserver/resp/diagnostics": {
		ours: []string{
			"rlserver/resp/config", "rlserver/internal/grammar",
		},
	},
	"rlserver/resp/commands/caching": {
		ours: []string{"rlserver/engine", "rlserver/resp/command", "rlserver/resp/tracking"},
	},
	"rlserver/resp/commands/clustering": {
		ours: []string{
			"rlserver/cluster/overview", "rlserver/cluster/slot", "rlserver/engine", "rlserver/engine/object",
			"rlserver/internal/grammar",
			"rlserver/resp/command", "rlserver/resp/config", "rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/diagnose": {
		ours: []string{
			"rlserver/engine", "rlserver/resp/command", "rlserver/resp/diagnostics",
			"rlserver/resp/wire",
			"rlserver/internal/stats",
		},
	},
	"rlserver/resp/commands/hashes": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/object", "rlserver/resp/command",
			"rlserver/internal/grammar",
			"rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/keys": {
		ours: []string{
			"rlserver/engine",
			"rlserver/engine/limit",
			"rlserver/engine/object", "rlserver/engine/reserve",
			"rlserver/internal/rdb",
			"rlserver/zset",
			"rlserver/resp/command",
			"rlserver/resp/glob",
			"rlserver/internal/grammar",
			"rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/limits": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/ban",
			"rlserver/engine/limit", "rlserver/engine/overrides",
			"rlserver/engine/object", "rlserver/resp/glob",
			"rlserver/engine/policy", "rlserver/engine/reserve", "rlserver/engine/rule",
			"rlserver/resp/command",
			"rlserver/internal/grammar",
			"rlserver/resp/wire",
			"rlserver/internal/stats",
		},
	},
	"rlserver/resp/commands/lists": {
		ours: []string{
			"rlserver/engine/effect",
			"rlserver/engine", "rlserver/engine/object", "rlserver/internal/list", "rlserver/resp/command",
			"rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/sets": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/object", "rlserver/resp/command", "rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/server": {
		ours: []string{
			"rlserver/internal/acl", "rlserver/cluster/overview", "rlserver/engine",
			"rlserver/engine/object",
			"rlserver/engine/eviction",
			"rlserver/internal/grammar", "rlserver/internal/rdb", "rlserver/resp/command", "rlserver/resp/config",
			"rlserver/resp/glob", "rlserver/resp/pubsub",
			"rlserver/resp/wire", "rlserver/internal/stats", "rlserver/internal/storage",
		},
	},
	"rlserver/resp/commands/str": {
		ours: []string{
			"rlserver/internal/bitmap", "rlserver/engine", "rlserver/engine/object",
			"rlserver/resp/command", "rlserver/internal/grammar", "rlserver/resp/wire",
		},
	},
	"rlserver/resp/commands/users": {
		ours: []string{"rlserver/internal/acl", "rlserver/engine", "rlserver/resp/command", "rlserver/resp/wire"},
	},
	"rlserver/resp/commands/zsets": {
		ours: []string{
			"rlserver/engine",
			"rlserver/zset",
			"rlserver/resp/command",
			"rlserver/internal/grammar",
			"rlserver/resp/wire",
		},
	},
	"rlserver/internal/clock":   {},
	"rlserver/internal/process": {},
	"rlserver/persistence": {
		ours: []string{
			"rlserver/engine", "rlserver/engine/effect", "rlserver/engine/object",
			"rlserver/internal/largecopy",
			"rlserver/internal/storage",
		},
		others: []string{"github.com/klauspost/compress/zstd"},
	},
	"rlserver/engine": {
		ours: []string{
			"rlserver/engine/ban",
			"rlserver/engine/change", "rlserver/engine/counts", "rlserver/engine/hits",
			"rlserver/engine/lock", "rlserver/engine/moveback", "rlserver/engine/script",
			"rlserver/engine/denials", "rlserver/engine/effect", "rlserver/engine/eviction",
			"rlserver/engine/limit",
			"rlserver/engine/object", "rlserver/engine/policy", "rlserver/engine/reserve",
			"rlserver/engine/rule", "rlserver/engine/sampling", "rlserver/engine/snapshot", "rlserver/engine/table",
			"rlserver/engine/watches",
			"rlserver/internal/bitmap", "rlserver/internal/dict", "rlserver/internal/list", "rlserver/zset",
			"rlserver/internal/stats",
		},
	},
	"rlserver/engine/counts": {},
	"rlserver/engine/table": {
		ours: []string{"rlserver/engine/counts", "rlserver/engine/object", "rlserver/internal/dict"},
	},
	"rlserver/engine/hits": {ours: []string{"rlserver/engine/effect", "rlserver/engine/object", "rlserver/zset"}},
	"rlserver/engine/moveback": {
		ours: []string{
			"rlserver/engine/effect", "rlserver/engine/limit", "rlserver/engine/object", "rlserver/zset",
		},
	},
	"rlserver/engine/background": {ours: []string{"rlserver/engine", "rlserver/engine/overrides"}},
	"rlserver/engine/overrides": {
		ours: []string{"rlserver/engine", "rlserver/engine/effect", "rlserver/engine/policy", "rlserver/engine/rule"},
	},
	"rlserver/engine/watches": {ours: []string{"rlserver/engine/effect", "rlserver/engine/object"}},
	"rlserver/engine/sampling": {
		ours: []string{
			"rlserver/engine/eviction", "rlserver/engine/object", "rlserver/engine/table", "rlserver/internal/dict",
		},
	},
	"rlserver/engine/snapshot": {
		ours: []string{
			"rlserver/engine/effect", "rlserver/engine/object", "rlserver/engine/table", "rlserver/internal/dict",
		},
	},
	"rlserver/engine/object": {
		ours: []string{
			"rlserver/engine/ban", "rlserver/engine/counts",
			"rlserver/engine/effect", "rlserver/engine/eviction", "rlserver/engine/limit",
			"rlserver/engine/reserve", "rlserver/engine/rule",
			"rlserver/internal/bitmap", "rlserver/internal/dict", "rlserver/internal/grammar",
			"rlserver/internal/largecopy", "rlserver/internal/list", "rlserver/internal/rdb", "rlserver/zset",
		},
	},
	"rlserver/internal/largecopy": {},
	"rlserver/internal/list":      {},
	"rlserver/engine/effect": {
		ours: []string{
			"rlserver/engine/limit", "rlserver/internal/largecopy", "rlserver/zset",
		},
	},
	"rlserver/engine/eviction": {ours: []string{"rlserver/engine/limit"}},
	"rlserver/engine/denials":  {ours: []string{"rlserver/engine/rule"}},
	"rlserver/engine/ban":      {ours: []string{"rlserver/engine/limit"}},
	"rlserver/engine/reserve":  {ours: []string{"rlserver/engine/limit", "rlserver/engine/rule"}},
	"rlserver/engine/rule": {
		ours: []string{
			"rlserver/engine/ban",
			"rlserver/engine/limit", "rlserver/internal/grammar",
		},
	},
	"rlserver/engine/policy": {
		ours: []string{
			"rlserver/engine/ban", "rlserver/engine/counts", "rlserver/engine/effect", "rlserver/engine/rule",
			"rlserver/internal/stats",
		},
	},
	"rlserver/engine/limit":    {},
	"rlserver/internal/rdb":    {},
	"rlserver/internal/bitmap": {},
	"rlserver/internal/stats":  {},
	"rlserver/zset/hitlog":     {ours: []string{"rlserver/internal/dict"}},
	"rlserver/zset": {
		ours:   []string{"rlserver/internal/dict", "rlserver/zset/hitlog"},
		others: []string{"github.com/google/btree"},
	},
	"rlserver/internal/dict":       {others: []string{"github.com/dchest/siphash"}},
	"rlserver/integration":         {},
	"rlserver/integration/disk":    {others: []string{"golang.org/x/sys/unix"}},
	"rlserver/integration/network": {},
	"rlserver/integration/nemesis": {
		ours: []string{
			"rlserver/cluster/clustertest", "rlserver/cluster/slot", "rlserver/integration/disk",
			"rlserver/integration/network",
		},
		others: []string{"github.com/anishathalye/porcupine", "github.com/redis/go-redis/v9", "golang.org/x/sys/unix"},
	},
	"rlserver/integration/budgets": {},
	"rlserver/bench/budgets":       {},
	"rlserver/bench/attack":        {ours: []string{"rlserver/internal/rdb"}},
	"rlserver/bench/cluster":       {ours: []string{"rlserver/cluster/slot"}},
	"rlserver/bench/latency":       {others: []string{"golang.org/x/sys/unix"}},
	"rlserver/bench/idle":          {},
}

func TestImportsRunInOneDirection(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "rlserver/...").Output()
	require.NoError(t, err)
	seen := 0
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); seen++ {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		require.NoError(t, decoder.Decode(&pkg))
		may, listed := mayImport[pkg.ImportPath]
		if !assert.True(t, listed, "package %s is not listed: add it to mayImport", pkg.ImportPath) {
			continue
		}
		for _, imported := range pkg.Imports {
			first, _, _ := strings.Cut(imported, "/")
			switch {
			case first == "rlserver":
				assert.Contains(t, may.ours, imported, "%s may not import %s", pkg.ImportPath, imported)
			case strings.Contains(first, "."):
				assert.True(t, slices.Contains(may.others, imported), "%s may not import %s", pkg.ImportPath,
					imported)
			}
		}
	}
	assert.Equal(t, len(mayImport), seen, "every package was checked")
}
