// Package web serves HTTP: metrics for Prometheus, health checks, and a page that shows the state
// of the server and of single ids. Only what a user does on the page changes anything.
//
//	/                the page, see static/; it loads nothing from other hosts
//	/api/history     the last hour, for the page's plots
//	/api/events      the content of the page, once a second, as server-sent events
//	/api/limiter     the state of one key
//	/api/ids         the ids of a policy, with their use: RL.POLICY IDS
//	/api/overrides   the ids for which a policy has other numbers: RL.POLICY LIST with FOR
//	/api/banned      the ids that are banned: RL.BANNED
//	/api/usage       what an id has used of each policy: RL.USAGE
//	/api/reset       RL.RESET of an id, of one policy
//	/api/unban       RL.UNBAN of an id, of one policy
//	/metrics         metrics for Prometheus
//	/healthz         the process answers
//	/readyz/traffic  the data is loaded, the disk works, and the server is not stopping
//	/readyz          that and, of a cluster, that any one node may be lost or stopped
//	/debug/pprof/    profiles of the Go runtime, with --debug-http
//
// # Source
//
// The package depends only on the counters of package stats and on package cluster/overview. It
// gets everything else from a Source, in a State of counters and sizes. Collecting a State takes no
// lock for long, so a scrape costs the same for one key and for a million. INFO reads the same
// counters. Labels of metrics are commands, policies, types, groups and nodes, never keys or
// clients.
//
// # How to add a metric
//
//  1. Count it in package stats, or where similar counts are, and show it in INFO:
//     resp/commands/server/info.go.
//  2. state.go: add a field to State. cmd/rlserver/web_source.go sets it in webSource.State
//     without waiting for a lock of the keyspace.
//  3. metrics.go: add the metric, named by the conventions of Prometheus, without a label that
//     holds keys or clients.
//  4. If the page shows it: view.go and static/page.js. `make page` tests the page in Chromium.
//
// # The page
//
//	sampler   takes a State: once a second while a page is open, otherwise every five seconds
//	view      the State, and its changes since the previous one as rates, in JSON
//	history   the points of the last hour: a few values, the commands and the policies
//	frame     one event, encoded once; all streams send the same bytes
//
// A stream that is not ready for a frame skips it. The most denied keys are those of RL.TOP; a
// click requests the state of one key, by the rule that last denied it.
//
// # Calls
//
// What the page shows of single ids comes from calls of the Redis protocol, as no counter has it:
// calls.go, customers.go. They are made when someone asks, and never again by themselves. A request
// walks keys until it has a page of ids or 0.3 s are over; at most four requests make calls at the
// same time. The body has the id, which may be any bytes and too long for an address.
//
// A [Caller] makes them as the user of the request, who needs the permission for each. So there is
// no second way to run a call, and in a cluster it runs where its keys are.
//
// # Access
//
// If clients of the Redis protocol need a password or there is a token, so do clients of HTTP,
// except for health checks. A user sees what the user's calls would show: the metrics with INFO,
// the page with RL.TOP as well, a key with PTTL.
//
// A login counts only if it proves who the client is: by a password, the token, or a client
// certificate that the handshake has verified. The name of a user without a password proves
// nothing. Clients without such a login are served only if no login is needed. Protected mode then
// rejects those on other machines, and those on this machine have to address it as localhost or by
// its IP address: a page of another site can make a browser send requests here under the site's own
// name, with any header.
//
// Paths that make calls take POST alone, with a body of JSON. A page of another site cannot send
// that with the login that a browser keeps for this server: its origin is refused, and so is a type
// that a form could send. Without a login they have to be addressed as localhost or by an IP
// address from other machines too. The token changes nothing.
//
// With TLS, clients need no certificate, as browsers, Prometheus and probes rarely have one. If
// tls-auth-clients is yes, a client without one has to log in or send the token.
//
// # Limits
//
// Requests, streams, headers and the time of each step are limited. Above the limit of requests the
// response is 503 at once; slow readers are disconnected. Connections that have not sent a request
// keep no new one out, so that health checks are always answered: places.go. Only HTTP/1.1 is
// supported, so a connection has one request at a time. A client of the Redis protocol gets an
// error with the right port.
package web
