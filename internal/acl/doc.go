// Package acl checks whether a user may run a command on its keys and channels. Rules and their
// notation are those of Redis 7.
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
//	Log       the latest denied calls and failed logins
//	Change    a change of the users in a form that other nodes of a cluster can apply
//	Failures  failed logins by address, whose next attempts are delayed
//
// A call is allowed if one of the user's selectors allows all of it: the command, each key with the
// access that the command has to it, and each channel. A connection holds an *Account and loads its
// User for each call, so a change takes effect with the next call, also within a pipeline.
// User.Unrestricted is true for the initial default user, so that most calls need no check.
//
// # Rules
//
// Rules are applied in order to a copy of the user, so that an error changes nothing. A rule for a
// command with subcommands applies to all of them. User.Describe returns rules that create an equal
// user. It uses the algorithm of Redis: first the best fitting categories, then single commands for
// the exceptions. For commands of Redis the text is the same as in Redis. So the catalog also has
// the commands that only Redis has: they cannot be called, and no list shows them.
//
// A file of users that the server has written gives the same users when it is read. So names,
// patterns and first arguments have no white space, no rule in a selector ends with a parenthesis,
// and a user whose line would be too long is refused. Redis accepts such first arguments and the
// empty name.
//
// # Passwords
//
// Only SHA-256 digests are kept, shown and saved. A login compares the digest of the given password
// with each digest of the user in constant time. For an unknown user it compares with a digest that
// no password has.
//
// # Limits
//
// Settings limit the number of users, the memory of each and the entries of the log.
//
// # Left out
//
// There are no modules and no Lua scripts, so the catalog is fixed once it has been created. The
// package has no connections, replies or clock: package resp finds the keys of a call, closes
// connections, delays logins and formats the replies.
package acl
