// Package rule has the text form of limits: the algorithms by name, the fields of each, and their
// syntax in calls, definitions and the log.
//
//	rule.go    Rule: one algorithm with its numbers, for the engine
//	table.go   the table of algorithms: name, fields, options
//	field.go   Field.Read: one word of a call or a definition, into a Rule
//	policy.go  ParsePolicy: a name and a definition in its canonical form
//	network.go Networks: ids that are IP addresses, and as what they count
//
// A new algorithm is an entry in the table and, if its numbers have no type yet, a field of Rule.
// The commands, RL.ALL, RL.POLICY, the policy file and the help texts use the table; what the
// algorithm does is in the table of package engine.
package rule
