// Package web serves HTTP: metrics for Prometheus, health checks, and a page that shows the server.
// Nothing that it serves changes anything.
//
//	/                the page: static/, our own HTML, CSS and JavaScript; no other address is used
//	/api/history     the last hour, for the page's plots
//	/api/events      what is shown, once a second, as server-sent events
//	/api/limiter     the state of one key
//	/metrics         metrics for Prometheus
//	/healthz         the process answers
//	/readyz          the data is loaded, the disk works, and the server is not stopping
//	/debug/pprof/    profiles of the Go runtime, if they are asked for
//
// # How it knows
//
// The package knows no other part of the server except the counters of package stats. Source is
// what it asks: a State of counters and sizes that takes no lock for long, so that a scrape costs
// the same for one key and for a million. INFO reads the same counters. Labels of metrics are
// commands, policies and types, never keys or clients.
//
// # How to add a metric
//
//  1. Count it in package stats, or where similar counts are, and show it in INFO:
//     resp/commands/server/info.go.
//  2. state.go: add a field to State. cmd/rlserver/web.go sets it in webSource.State without
//     waiting for a lock of the keyspace.
//  3. metrics.go: add the metric, named by the conventions of Prometheus, without a label that
//     holds keys or clients.
//  4. If the page shows it: view.go and static/page.js. `make page` tests the page in Chromium.
//
// # The page
//
//	sampler   takes a State: once a second while a page is open, else every five seconds
//	view      what has changed between two States, in rates, as JSON
//	past      a ring of one hour of points: a few figures, the commands and the policies
//	frame     one event, encoded once; all streams send the same bytes
//
// A stream that is not ready for a frame skips it. The keys that are denied most are those of
// RL.TOP; a click asks for the state of one key, by the rule that denied it last.
//
// # Access
//
// If clients of the Redis protocol need a password or there is a token, so do those of HTTP, except
// for health checks. A user sees what calls would show: the metrics with INFO, the page with RL.TOP
// as well, a key with PTTL. Without either, clients of other machines are refused in protected
// mode, and those of this machine have to address it as localhost or by its IP address: a page of
// another site can make a browser send requests here under a name of its own.
//
// With TLS, clients need no certificate, as browsers, Prometheus and probes rarely have one. Where
// tls-auth-clients is yes, a client without one has to log in or give the token.
//
// # Bounds
//
// Connections, streams, headers and the time that each step takes have limits. Above the limit of
// connections the answer is 503 at once; a reader that is too slow is cut off. Only HTTP/1.1 is
// spoken, so a connection has one request at a time. A client of the Redis protocol gets an error
// that names the right port.
package web
