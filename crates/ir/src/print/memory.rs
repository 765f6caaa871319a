//! Prints meters, registers, pools and groups.

use super::*;

/// All of them in order of declaration.
pub(super) fn write_memory(out: &mut Formatter<'_>, program: &Program) -> fmt::Result {
    for (index, meter) in program.meters.iter().enumerate() {
        let unit = if meter.packets { "packets" } else { "bytes" };
        write!(out, "meter m{index} {} size {} {unit} ", Quoted(&meter.name), meter.size)?;
        if meter.period != 1 {
            write!(out, "every {} ", meter.period)?;
        }
        match meter.rates {
            Rates::Single { committed, burst, excess } => {
                writeln!(out, "single {committed} {burst} {excess}")?
            }
            Rates::Two { committed, burst, peak, peak_burst } => {
                writeln!(out, "two {committed} {burst} {peak} {peak_burst}")?
            }
        }
    }
    for (index, register) in program.registers.iter().enumerate() {
        let Register { name, size, column } = register;
        writeln!(out, "register x{index} {} size {size} {column}", Quoted(name))?;
    }
    for (index, pool) in program.pools.iter().enumerate() {
        let ranges = pool.ranges.iter().map(|(low, high)| format!("{} {}", Number(*low), Number(*high)));
        let Pool { name, columns, .. } = pool;
        writeln!(out, "pool q{index} {} ({}) ({})", Quoted(name), list(columns), list(ranges))?;
    }
    for (index, group) in program.groups.iter().enumerate() {
        let Group { name, size, buckets, capacity, multicast, columns, members, file } = group;
        write!(out, "group u{index} {} size {size} buckets {buckets} capacity {capacity} ", Quoted(name))?;
        if *multicast {
            write!(out, "multicast ")?;
        }
        let member = |(index, columns, weight): &(u32, Vec<u128>, u32)| {
            format!("{index} ({}) {weight}", list(columns.iter().map(|&number| Number(number))))
        };
        write!(out, "({}) ({})", list(columns), list(members.iter().map(member)))?;
        if let Some(path) = file {
            write!(out, " file {}", Quoted(path))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
