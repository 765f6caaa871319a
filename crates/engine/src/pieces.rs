//! What leaves by a port for a packet: the packet itself, or its fragments one after the other.

use exec::{Outputs, Resized};
use packet::Batch;
use packet::fragment::Pieces;
use std::convert::Infallible;

/// The fragments of a packet of the batch; `None` if it leaves in one piece.
pub(crate) fn of(memory: &[u8], batch: &Batch, resized: &Resized) -> Option<Pieces> {
    let index = resized.packet as usize;
    let bytes = batch.bytes(memory, index)?;
    Pieces::of(bytes, batch.wire[index], resized.fragmenting?)
}

/// Passes each piece of a packet that leaves to a function, with its length on the wire. `piece` is room for
/// one piece.
pub(crate) fn each<E>(
    bytes: &[u8],
    wire: u32,
    pieces: Option<&Pieces>,
    piece: &mut Vec<u8>,
    mut leave: impl FnMut(&[u8], u32) -> Result<(), E>,
) -> Result<(), E> {
    let Some(pieces) = pieces else { return leave(bytes, wire) };
    for index in 0..pieces.count() {
        let wire = pieces.write(bytes, index, piece);
        leave(piece, wire)?;
    }
    Ok(())
}

/// All pieces of packet `index` of the batch that leave by one port, with their lengths on the wire.
pub fn leaving(memory: &[u8], batch: &Batch, outputs: &Outputs, index: usize) -> Vec<(Vec<u8>, u32)> {
    let (bytes, wire) = (batch.bytes(memory, index).unwrap_or_default(), batch.wire[index]);
    let change = outputs.resized.iter().find(|change| change.packet as usize == index);
    let pieces = change.and_then(|change| of(memory, batch, change));
    let mut all = Vec::new();
    let left = each(bytes, wire, pieces.as_ref(), &mut Vec::new(), |bytes, wire| {
        all.push((bytes.to_vec(), wire));
        Ok::<(), Infallible>(())
    });
    let Ok(()) = left;
    all
}
