//! What limitador's storage on disk names of the crate rocksdb. No database can be opened.
use std::marker::PhantomData;
use std::path::Path;

#[derive(Debug)]
pub struct Error;

#[derive(PartialEq)]
pub enum ErrorKind {
    NotSupported,
    TimedOut,
    TryAgain,
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::NotSupported
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no RocksDB in this build")
    }
}

impl std::error::Error for Error {}

pub enum CompactionDecision {
    Keep,
    Remove,
}

pub enum DBCompressionType {
    Bz2,
    None,
}

pub enum IteratorMode {
    Start,
}

pub struct MergeOperands(Vec<Vec<u8>>);

impl<'a> IntoIterator for &'a MergeOperands {
    type Item = &'a [u8];
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Vec<u8>>, fn(&Vec<u8>) -> &[u8]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|operand| operand.as_slice())
    }
}

#[derive(Default)]
pub struct Options;

impl Options {
    pub fn set_compression_type(&mut self, _: DBCompressionType) {}

    pub fn set_compaction_filter<F>(&mut self, _: &str, _: F)
    where
        F: FnMut(u32, &[u8], &[u8]) -> CompactionDecision + Send + 'static,
    {
    }

    pub fn set_merge_operator_associative<F>(&mut self, _: &str, _: F)
    where
        F: Fn(&[u8], Option<&[u8]>, &MergeOperands) -> Option<Vec<u8>> + Clone + Send + Sync + 'static,
    {
    }

    pub fn create_if_missing(&mut self, _: bool) {}
}

pub struct MultiThreaded;

pub struct DBWithThreadMode<T>(PhantomData<T>);

pub type DB = DBWithThreadMode<MultiThreaded>;

type Entry = Result<(Box<[u8]>, Box<[u8]>), Error>;

impl<T> DBWithThreadMode<T> {
    pub fn open<P: AsRef<Path>>(_: &Options, _: P) -> Result<Self, Error> {
        Err(Error)
    }

    pub fn get<K: AsRef<[u8]>>(&self, _: K) -> Result<Option<Vec<u8>>, Error> {
        Err(Error)
    }

    pub fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, _: K, _: V) -> Result<(), Error> {
        Err(Error)
    }

    pub fn delete<K: AsRef<[u8]>>(&self, _: K) -> Result<(), Error> {
        Err(Error)
    }

    pub fn iterator(&self, _: IteratorMode) -> std::iter::Empty<Entry> {
        std::iter::empty()
    }

    pub fn prefix_iterator<P: AsRef<[u8]>>(&self, _: P) -> std::iter::Empty<Entry> {
        std::iter::empty()
    }
}
