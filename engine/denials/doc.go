// Package denials counts the keys that limiters deny most, in bounded memory. The engine has one
// Counters for each shard, and uses it under the lock of the shard.
package denials
