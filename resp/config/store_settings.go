package config

// StoreSettings are the settings of a Store that can change while it runs.
type StoreSettings struct {
	AppendFsync string // when the log is synced to the disk: always, everysec or no
	// growth of the log since the last snapshot that triggers the next one; 0: none does
	RewritePercentage int64
	RewriteMinSize    int64      // least bytes of the log for RewritePercentage to apply
	Save              SavePoints // when else a snapshot is taken; immutable
	OnDiskFailure     string     // whether changes go on when the disk fails: refuse or continue
}

// StoreStatus is the status of a Store for INFO and LASTSAVE. Times are Unix ms.
type StoreStatus struct {
	Failure string // permanent error of the log; "": none
	Full    string // error of the log that ends when the disk has space; "": none

	Saving          bool  // a snapshot is being taken
	SaveStarted     int64 // when it started
	SaveKeysDone    int64 // keys that it has written, of SaveKeys
	SaveKeys        int64
	Saves           int64 // snapshots started by this process
	LastSave        int64 // when the last successful one ended; 0: unknown
	LastSaveFailed  bool  // the last one failed
	LastSaveTook    int64 // duration of the last one in ms; -1: none has ended
	ChangesUnsaved  int64 // since the start of the last successful snapshot
	LogSize         int64 // bytes of snapshot and log that a start would read
	LogSizeAtSave   int64 // LogSize after the last snapshot
	LogBuffered     int64 // bytes not yet written
	LogSyncsDelayed int64 // syncs that had to wait for the one before; -1: not counted

	LoadTotal, LoadDone int64 // bytes to read at the start, and read so far
	// keys that the start has loaded, and expired keys that it skipped
	KeysLoaded, KeysExpired int64
}
