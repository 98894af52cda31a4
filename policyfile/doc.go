// Package policyfile keeps the policies of an engine as a YAML file defines them: the file of
// --policies, which is read at the start, after SIGHUP and by RL.POLICY RELOAD.
//
//	policies:
//	  login: {slide: {limit: 5, window: 1m}, shadow: true}
//	  api:   {token: {capacity: 100, refill: 10, period: 1s}}
//	  quota: {fixed: {limit: 10000, window: month, tz: Europe/Berlin}}
//	  jobs:  {lease: {limit: 3, ttl: 30s}}
//
// A policy has one algorithm with its fields, and may have shadow. The algorithms and their fields
// are those of package rule. No field may be missing, except options and shadow, and no unknown
// field may be there. An error names the line.
//
// A file sets all of its policies or, with an error, none. Policies with other names are kept.
//
// The parser takes time and memory in proportion to the length of the file, whatever is in it:
// anchors, aliases and merges are refused, not followed. As it takes much of both for each node, a
// file that may have more than two million is refused before it is parsed.
package policyfile
