package config

// StoreSettings are what a Store goes by, and can be changed while it runs.
type StoreSettings struct {
	AppendFsync       string     // when the log is synced to the disk: always, everysec or no
	RewritePercentage int64      // by how much the log may grow beyond its size after the last snapshot until the next is taken; 0: none is for that
	RewriteMinSize    int64      // bytes that the log has at least when RewritePercentage applies
	Save              SavePoints // when else a snapshot is taken. Not to be written to
	OnDiskFailure     string     // whether changes go on when the disk fails: refuse or continue
}

// StoreStatus is what INFO and LASTSAVE tell of a Store. Times are Unix ms.
type StoreStatus struct {
	Failure string // of the log, for good: why it can be written no more; "" while it can
	Full    string // why the log cannot be written until there is room on the disk; "" while it can

	Saving          bool  // a snapshot is being taken
	SaveStarted     int64 // when it was begun
	SaveKeysDone    int64 // how many keys of it are through, of SaveKeys
	SaveKeys        int64
	Saves           int64 // how many were begun since the start
	LastSave        int64 // when the last good one was through; 0: none was, that this process knows of
	LastSaveFailed  bool  // the last one that ended was not good
	LastSaveTook    int64 // ms from its beginning to its end; -1: none has ended
	ChangesUnsaved  int64 // since the last good snapshot was begun
	LogSize         int64 // bytes of the snapshot and the log that a start would read
	LogSizeAtSave   int64 // bytes that these had after the last snapshot
	LogBuffered     int64 // bytes that wait to be written
	LogSyncsDelayed int64 // how many syncs came late as the one before still went on; -1: that is not counted

	LoadTotal, LoadDone     int64 // bytes to read at the start, and read so far
	KeysLoaded, KeysExpired int64 // what the start has found: keys taken, and keys left out as their time had come
}
