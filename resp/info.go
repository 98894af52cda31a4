package resp

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func init() {
	register(&command{name: "info", arity: -1, flags: loading | stale, group: "server", since: "1.0.0", complexity: "O(1)",
		categories: "dangerous", tips: "nondeterministic_output request_policy:all_shards response_policy:special",
		syntax: "[section [section ...]]", summary: "Get information and statistics about the server", run: info})
}

// section is a part of INFO.
type section struct {
	name string
	tell func(*Server, *strings.Builder)
}

var sections = []section{
	{"server", (*Server).tellServer},
	{"clients", (*Server).tellClients},
	{"keyspace", (*Server).tellKeyspace},
}

// info handles INFO [section [section ...]].
func info(c *call) error {
	wanted := make(map[string]bool)
	all := !c.args.more()
	for c.args.more() {
		name := strings.ToLower(string(c.args.next()))
		wanted[name] = true
		all = all || name == "default" || name == "all" || name == "everything"
	}
	var text strings.Builder
	for _, s := range sections {
		if all || wanted[s.name] {
			if text.Len() > 0 {
				text.WriteString("\r\n")
			}
			fmt.Fprintf(&text, "# %s%s\r\n", strings.ToUpper(s.name[:1]), s.name[1:])
			s.tell(c.server, &text)
		}
	}
	c.reply.verbatim(text.String())
	return nil
}

func field(text *strings.Builder, name string, value any) {
	fmt.Fprintf(text, "%s:%v\r\n", name, value)
}

func (s *Server) tellServer(text *strings.Builder) {
	field(text, "redis_version", redisVersion)
	field(text, "server_name", "rlserver")
	field(text, "rlserver_version", s.version)
	field(text, "redis_mode", "standalone")
	field(text, "os", runtime.GOOS+" "+runtime.GOARCH)
	field(text, "process_id", os.Getpid())
	field(text, "uptime_in_seconds", int64(time.Since(s.started).Seconds()))
}

func (s *Server) tellClients(text *strings.Builder) {
	field(text, "connected_clients", s.clients())
	field(text, "maxclients", s.settings.maxClients.Load())
}

func (s *Server) tellKeyspace(text *strings.Builder) {
	for db := range s.engine.Databases() {
		if keys, expires := s.engine.Size(db); keys > 0 {
			fmt.Fprintf(text, "db%d:keys=%d,expires=%d\r\n", db, keys, expires)
		}
	}
}
