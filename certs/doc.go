// Package certs keeps the certificate of a server that speaks TLS: it reads it from files, reads it
// again when the files change, and makes certificates to try TLS with.
//
// # Model
//
//	Files -> Open, Use, Watch -> Store -> Config -> a listener
//
// A [Store] has the certificate that is in force. Each handshake asks for it, so a new certificate
// serves the next connection, and no open connection is dropped. If the new files are invalid, the
// error names the file and the fault, and the old certificate stays in force. Any number of
// listeners may use the Config of one Store.
//
// # Invariants
//
//   - A Store that Open has returned always has a valid certificate.
//   - A change of the files is read once they have stayed the same between two looks: the
//     certificate and its key are two files, and replacing them takes two steps.
//   - Session tickets of one configuration are not valid in the next: a client whose certificate is
//     no longer accepted cannot resume its session.
//
// # Left out on purpose
//
// Versions before TLS 1.2 are refused. crypto/tls chooses the ciphers. Private keys with a
// passphrase are not read, and there are no revocation lists.
package certs
