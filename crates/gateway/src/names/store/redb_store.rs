//! The store in a file of this machine, by `redb`.

use naming::store::{Store, StoreChange, StoreError, StorePart, Stored};
use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A store in one file.
pub(super) struct RedbStore(Database);

fn table(part: StorePart) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(match part {
        StorePart::Life => "life",
        StorePart::Names => "names",
        StorePart::Bindings => "bindings",
    })
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError(error.into().to_string())
}

impl RedbStore {
    /// Opens the file, or makes one that only this user reads.
    pub(super) fn open(path: &Path) -> Result<RedbStore, StoreError> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(|error| StoreError(error.to_string()))?;
        let backend = FileBackend::new(file).map_err(failed)?;
        RedbStore::with(Database::builder().create_with_backend(backend).map_err(failed)?)
    }

    /// The store in this database.
    pub(super) fn with(database: Database) -> Result<RedbStore, StoreError> {
        let write = database.begin_write().map_err(failed)?;
        for part in StorePart::ALL {
            write.open_table(table(part)).map_err(failed)?;
        }
        write.commit().map_err(failed)?;
        Ok(RedbStore(database))
    }
}

impl Store for RedbStore {
    fn all(&self, part: StorePart) -> Result<Vec<Stored>, StoreError> {
        let read = self.0.begin_read().map_err(failed)?;
        let table = read.open_table(table(part)).map_err(failed)?;
        let mut all = Vec::new();
        for entry in table.iter().map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            all.push((key.value().to_vec(), value.value().to_vec()));
        }
        Ok(all)
    }

    fn commit(&mut self, changes: &[StoreChange]) -> Result<(), StoreError> {
        let write = self.0.begin_write().map_err(failed)?;
        for part in StorePart::ALL {
            let mut table = write.open_table(table(part)).map_err(failed)?;
            for change in changes.iter().filter(|change| change.part == part) {
                match &change.value {
                    Some(value) => {
                        drop(table.insert(change.key.as_slice(), value.as_slice()).map_err(failed)?)
                    }
                    None => drop(table.remove(change.key.as_slice()).map_err(failed)?),
                }
            }
        }
        write.commit().map_err(failed)
    }
}
