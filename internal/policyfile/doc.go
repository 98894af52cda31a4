// Package policyfile loads the policies of an engine from a YAML file: the file of --policies,
// which is read at the start, after SIGHUP and by RL.POLICY RELOAD.
//
//	policies:
//	  login: {slide: {limit: 5, window: 1m}, shadow: true}
//	  api:   {token: {capacity: 100, refill: 10, period: 1s}}
//	  quota: {fixed: {limit: 10000, window: month, tz: Europe/Berlin}}
//	  jobs:  {lease: {limit: 3, ttl: 30s}}
//	  guest: {slide: {limit: 5, window: 1m}, ip4: 24, ip6: 64}
//	  plan:  {slide: {limit: 5, window: 1m}, overrides: {acme: {limit: 50, window: 1m}}}
//
// A name is 1 to 64 letters, digits and ._-/:@. A policy has one algorithm with its fields, and may
// have ip4, ip6, overrides and shadow. Package rule declares the algorithms and their fields. All
// fields of an algorithm are required except for its options; unknown fields are errors. Errors
// contain the line.
//
// A file sets all of its policies or, after an error, none. Policies with other names stay.
//
// The parser takes time and memory in proportion to the length of the file, whatever its content:
// anchors, aliases and merge keys are errors. As each node costs much of both, a file that may have
// more than two million nodes is rejected before it is parsed.
package policyfile
