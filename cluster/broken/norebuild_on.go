//go:build broken_norebuild

package broken

const NoRebuild = true
