// Package wire is the layer between a client's socket and the server's commands: it splits the
// input into commands, formats replies, and queues replies that the client does not read at once.
//
// # Model
//
// A connection has one [Guard] between its socket and its session:
//
//	socket -> receive -> framing.buf -> Guard.Wait -> Guard.Next -> the session
//
//	socket <- sender <- Guard.Send <- Reply.B <- the session
//	            |
//	            +-> queue -> pump    while the client reads too slowly
//
// redcon's parser is not used: it panics on a bulk length near the maximum of int64, doubles its
// buffer without limit, parses an incomplete command again at each read, allocates three times per
// command, and parses inline commands differently from Redis.
//
// # Framing
//
// The buffer of the input, and how far it is processed:
//
//	buf  [ taken | checked | searched | unseen | free space ]
//	             ^ head    ^ pos      ^ scan   ^ len(buf)
//
//	*2\r\n $3\r\nGET\r\n $1\r\nk\r\n    an array: one or more bulk strings
//	GET k\r\n                           an inline command: words, with quotes
//
// No index moves back over a byte, so the work is linear in the input, even if it arrives one byte
// at a time. Arrays of short lengths, which are nearly all commands, take a fast path (words.go).
// The buffer grows with the input that has arrived, never by an announced length, and a connection
// that waits for its next command holds none. A bulk string that is far longer than its command
// accepts is refused when its length arrives.
//
// # Replies
//
// [Reply] has one method per kind of reply. Only it knows the differences between RESP2 and RESP3.
// A reply that is too large for its client is truncated while it is written: the call still runs in
// full, and the client is closed.
//
// The sender writes as much as the socket accepts without blocking. The rest is queued, and a
// goroutine, the pump, sends it while the connection's goroutine continues to read:
//
//	unread bytes   0 ........ pauseAt ............. hard limit
//	               sent or    the client's          the client
//	               queued     commands wait         is closed
//
// # TLS
//
// A connection with TLS has a tls.Conn between the guard and the socket (tls.go). The sender is
// below it, so its queue is encrypted, and the limits are the same:
//
//	socket -> tls.Conn -> receive
//	socket <- sender <- tls.Conn <- Guard.Send
//
// The first Read performs the handshake, which must end within [HandshakeTime] and preauth-timeout.
// Until then the client counts as one that has not authenticated. Guard.Conn is always the socket:
// closing it ends everything at once, even while another goroutine holds the locks of tls.Conn.
//
// # Invariants
//
//   - The words that Next and Ahead return are in the buffer. They are valid until the next call of
//     Next, Wait or Pause.
//   - Wait, Next, Ahead, Take, Pause and SetAuthenticated belong to the connection's goroutine. Any
//     goroutine may call the other methods.
//   - Every byte kept for a client is counted in Guard.Memory before it is waited for.
//   - A protocol error is sent with the text of Redis, after the replies to all earlier commands.
//   - A deadline is set before its flag is checked again, so Wake, Drain and Retime are never lost.
//   - Drain ends the stream after the last whole command. The server then closes its side
//     (CloseWrite) and discards the input that still arrives, so no reply is lost to a TCP reset.
//
// # Where Redis differs
//
// Two limits of Redis depend on how TCP segments the input. Here they do not: a line is too big
// with its 65537th byte, and a command is too big as soon as its headers say so. A client that
// speaks TLS on a port without it is refused at once; Redis waits for the end of an inline command.
//
// # Left out on purpose
//
// RESP3 input: clients send the same arrays in both protocols.
package wire
