// Package zset is the sorted set.
package zset
