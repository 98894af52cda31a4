// Package users handles ACL: users, their permissions, and the calls that were denied. Package acl
// has the rules; the commands that log in (AUTH, HELLO) and the check of each call are in package
// resp.
//
// A call changes users by command.Env.ChangeUsers: it closes the connections of
// deleted users and ends waiting calls that their users may not run any more.
package users
