// Package certs keeps the certificate of a TLS server: it reads it from files, reads it again when
// the files change, and generates certificates for tests.
//
// # Model
//
//	Files -> Open, Use, Watch -> Store -> Config -> a listener
//
// A [Store] has the current certificate. Each handshake gets it from the store, so a new
// certificate is used from the next connection on, and open connections stay open. If the new files
// are invalid, the error contains the file and the reason, and the old certificate stays in use.
// Any number of listeners may use the Config of one Store.
//
// # Invariants
//
//   - A Store that Open has returned always has a valid certificate.
//   - Changed files are read once two checks in a row have found them in the same state: the
//     certificate and its key are two files, and replacing them takes two steps.
//   - Session tickets of one configuration are not valid in the next: a client whose certificate is
//     no longer accepted cannot resume its session.
//
// # Left out
//
// Versions before TLS 1.2 are rejected. crypto/tls chooses the ciphers. Private keys with a
// passphrase are not read, and there are no revocation lists.
package certs
