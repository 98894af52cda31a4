// Package limit is the arithmetic of rate limiting.
package limit
