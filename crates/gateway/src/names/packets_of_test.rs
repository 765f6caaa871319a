//! Packets of tests: they take everything and tell nothing, but for what a test writes.

use super::packet_tables::PacketTables;
use super::packets::{DataPath, KeyState, PathRefusal, Reached, Row, Target};
use super::server_name_tables::OpenPort;
use super::stable::StableEntry;
use naming::{BindingKey, ClientConnection};

/// The methods of [`DataPath`], of which a test writes those that it is about.
pub(super) trait PacketsOfTest: Send {
    fn change(&mut self, _rows: Vec<Row>) -> Result<(), PathRefusal> {
        Ok(())
    }

    fn change_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
        promises.into_iter().map(|rows| self.change(rows)).collect()
    }

    fn lead(&mut self, _gone: Vec<StableEntry>, _new: Vec<StableEntry>) -> Result<(), String> {
        Ok(())
    }

    fn open(&mut self, _gone: Vec<OpenPort>, _new: Vec<OpenPort>) -> Result<(), String> {
        Ok(())
    }

    fn lead_client(&mut self, _connection: &ClientConnection, _target: Target) -> bool {
        false
    }

    fn lead_nobody(&mut self, _target: Target) {}

    fn reached(&mut self) -> Option<Vec<Reached>> {
        None
    }

    fn hold(&mut self, _keys: &[BindingKey]) -> Option<Vec<bool>> {
        None
    }

    fn state(&mut self) -> Option<KeyState> {
        None
    }
}

impl<T: PacketsOfTest> DataPath for T {
    fn change(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal> {
        PacketsOfTest::change(self, rows)
    }

    fn change_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
        PacketsOfTest::change_all(self, promises)
    }

    fn lead(&mut self, gone: Vec<StableEntry>, new: Vec<StableEntry>) -> Result<(), String> {
        PacketsOfTest::lead(self, gone, new)
    }

    fn open(&mut self, gone: Vec<OpenPort>, new: Vec<OpenPort>) -> Result<(), String> {
        PacketsOfTest::open(self, gone, new)
    }

    fn lead_client(&mut self, connection: &ClientConnection, target: Target, _: u64) -> bool {
        PacketsOfTest::lead_client(self, connection, target)
    }

    fn lead_nobody(&mut self, target: Target) {
        PacketsOfTest::lead_nobody(self, target);
    }

    fn reached(&mut self) -> Option<Vec<Reached>> {
        PacketsOfTest::reached(self)
    }

    fn hold(&mut self, keys: &[BindingKey]) -> Option<Vec<bool>> {
        PacketsOfTest::hold(self, keys)
    }

    fn state(&mut self, _: &BindingKey) -> Option<KeyState> {
        PacketsOfTest::state(self)
    }

    fn took_over(&mut self, _: PacketTables, _: u64) {}
}
