// Package acl decides which user may run which commands on which keys and channels, with the rules
// and in the notation of Redis 7.
//
//	user alice on #ab12… ~login:* %R~config:* resetchannels -@all +rl.check +@read (~tmp:* +@all)
//	     name  |  |      key patterns           channels      commands             selector
//	           |  SHA-256 of a password
//	           may log in
//
// # Model
//
//	Catalog   the commands: each has an index, and each category is a set of these as bits
//	selector  a set of commands, key patterns and channel patterns
//	User      a root selector, further selectors and passwords; immutable
//	Account   holds the current User of a name; connections keep a pointer to it
//	Users     all accounts by name; loads and saves the ACL file
//	Log       denied calls and failed logins, the latest ones
//
// A call is allowed if one of the user's selectors allows all of it: the command, each key with the
// access that the command has to it, and each channel. A connection holds an *Account and loads its
// User for each call, so a change takes effect with the next call, also within a pipeline.
// User.Unrestricted is true for the default user as it starts, so that most calls need no check.
//
// # Rules
//
// Rules are applied in order, to a copy of the user: after an error the user is as before. A rule
// for a command with subcommands applies to all of them. User.Describe returns rules that make an
// equal user, found as Redis finds them: first the categories that fit best, then single commands
// for what is left. For the commands of Redis the text is that of Redis.
//
// # Passwords
//
// Only SHA-256 digests are kept, shown and saved. A login compares the digest of the given password
// with each digest of the user in constant time; for an unknown user it compares with one that no
// password has.
//
// # Bounds
//
// Settings limit the number of users, the memory of each and the entries of the log.
//
// # Left out
//
// Modules and Lua scripts do not exist here, so nothing adds commands after the catalog is made.
// The package knows no connection, no reply and no clock: package resp finds the keys of a call,
// closes connections and words the replies.
package acl
