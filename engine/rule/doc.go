// Package rule is how a limit is written: the algorithms by name, the fields of each, and the words
// that clients, operators and the log use for them.
//
//	rule.go    Rule: one algorithm with its numbers, as the engine takes it
//	table.go   the table of algorithms: name, fields, options
//	field.go   Field.Read: one word of a call or a definition, into a Rule
//	policy.go  ParsePolicy: a name and a definition in its canonical form
//
// A new algorithm is an entry in the table and, if its numbers have no type yet, a field of Rule.
// The commands, RL.ALL, RL.POLICY, the file of policies and the help texts go by the table; what
// the algorithm does is in the table of package engine.
package rule
