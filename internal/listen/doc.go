// Package listen opens the sockets that clients connect to, and exchanges those of TCP while a
// server runs.
//
// A Sockets has the sockets of the ports for clients, one for each address. Change opens those that
// another Ports has in addition; Commit then closes those that it lacks, or Undo gives up. Sockets
// that both have stay open. So a server that cannot listen somewhere goes on as before, and clients
// that are connected do not notice.
//
// A Handed has connections that come from elsewhere: a pipe, or a port that several share.
//
// The system refuses 0.0.0.0 as long as a socket listens on 127.0.0.1 at the same port. Then Change
// closes the sockets of that port that are not needed any more at once, and Undo opens them again.
package listen
