package config

const (
	defaultScriptTime   = 5000     // ms
	defaultScriptMemory = 64 << 20 // bytes
	defaultScriptCache  = 64 << 20 // bytes
)
