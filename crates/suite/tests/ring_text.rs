//! The ring as kernels' text has it, in plain C: threads take slots from it, end and begin again, and a
//! sanitizer sees every access that nothing orders.

use exec::kernel::{Back, CopiedPart, Dialect, Kernel, KernelOptions};
use lang::pipeline::Decode;
use std::fs;
use std::process::Command;
use suite::agree::compile_as;

const PORTS: u16 = 5;

/// A program that reads, writes and counts.
const PROGRAM: &str = "
import std.net.{ethernet}
counter seen[64]
start decoder frame(eth: ethernet) {
    count seen[eth.type & 63]
    set eth.dst = eth.src
    if eth.type < 0x4000 { send 2 }
    if eth.type < 0x8000 { flood }
    send 3
}
";
/// One that gives a bit back.
const BIT: &str = "
import std.net.{ethernet}
start decoder frame(eth: ethernet) { if eth.type & 4 == 0 { send 2 } send 3 }
";

/// The host, and threads that are a kernel each time. What a slot is to become it works out by itself before
/// it hands the slot over.
const HOST: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#define SLOTS 5u
#define R 8u
#define ROOM 32u
#define HANDED 20000u
#define WORDS ((ROOM * BITS + 31u) / 32u)
static u8 bytes[SLOTS * ROOM * STRIDE], right_bytes[SLOTS][ROOM * STRIDE];
static u32 columns[SLOTS * ROOM * COLUMNS + 1];
static u32 verdicts[SLOTS * WORDS], right_verdicts[SLOTS][WORDS];
static u32 records[SLOTS * ROOM * RECORD_WORDS + 1], right_records[SLOTS][ROOM * RECORD_WORDS + 1];
static u32 ring[ENTRIES + R + SLOTS], own[96];
static u32 ended;

static void *kernel(void *number)
{
    for (u32 launch = 1; !__atomic_load_n(&ended, __ATOMIC_RELAXED); launch++) {
        serve_packets(bytes, columns, (RESULT *)verdicts, records, ring, own, R, ROOM, launch, 1 + launch % 7, 3 + *(u32 *)number);
        if (launch % 3 == 0) sched_yield();
    }
    return 0;
}

/* What one packet after the other leaves. */
static void right(u32 slot, u32 packets)
{
    GLOBAL RESULT *own_verdicts = (RESULT *)right_verdicts[slot];
    memset(own_verdicts, 0, sizeof right_verdicts[slot]);
    memcpy(right_bytes[slot], bytes + slot * ROOM * STRIDE, sizeof right_bytes[slot]);
    for (u32 packet = 0; packet < packets; packet++) {
        const u32 verdict =
            run_packet(right_bytes[slot], columns + slot * ROOM * COLUMNS, own_verdicts, right_records[slot], packets, packet);
#if BITS == 1
        own_verdicts[0] |= verdict << packet;
#else
        own_verdicts[packet] = (RESULT)verdict;
#endif
    }
}

int main(void)
{
    const u32 first = 0u - 300u;
    u32 next = first, chance = 1, packets[SLOTS] = { 0 }, given[SLOTS] = { 0 }, numbers[3] = { 0, 1, 2 };
    u32 handed = 0, seen = 0, wrong = 0, turns = 0;
    pthread_t threads[3];
    ring[PUBLISHED] = own[TAKEN] = own[KNOWN] = first;
    for (u32 slot = 0; slot < SLOTS; slot++) ring[ENTRIES + R + slot] = first;
    for (u32 i = 0; i < 3; i++) pthread_create(&threads[i], 0, kernel, &numbers[i]);
    /* Enough for what is right, and an end for what is not. */
    while (seen < HANDED && turns++ < 3000000u) {
        for (u32 slot = 0; slot < SLOTS; slot++) {
            if (packets[slot]) {
                if (acquire_host(ring + ENTRIES + R + slot) != given[slot] + 1u) continue;
                const u32 count = packets[slot];
                wrong += memcmp(bytes + slot * ROOM * STRIDE, right_bytes[slot], count * STRIDE) != 0;
                wrong += memcmp(verdicts + slot * WORDS, right_verdicts[slot], count * BITS / 8) != 0;
                wrong += memcmp(records + slot * ROOM * RECORD_WORDS, right_records[slot], 4 * count * RECORD_WORDS) != 0;
                packets[slot] = 0;
                seen++;
            }
            if (handed == HANDED || (chance = chance * 1664525u + 1013904223u) >> 31) continue;
            const u32 count = packets[slot] = 1 + (chance >> 8) % ROOM;
            for (u32 i = 0; i < count * STRIDE; i++) bytes[slot * ROOM * STRIDE + i] = (u8)(chance >> i % 23) ^ i;
            for (u32 i = 0; i < count * COLUMNS; i++) columns[slot * ROOM * COLUMNS + i] = 10 + (chance >> 16) % 9;
            right(slot, count);
            __atomic_store_n(ring + ENTRIES + next % R, slot | count << 16, __ATOMIC_RELAXED);
            given[slot] = next++;
            release_host(ring + PUBLISHED, next);
            handed++;
        }
        sched_yield();
    }
    release_host(ring + STOP, 1);
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    for (u32 i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%u seen, %u wrong, %u left\n", seen, wrong, next - own[TAKEN]);
    return 0;
}
"#;

#[test]
fn threads_take_every_slot_once_and_nothing_is_read_before_it_is_written() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no `cc` (on Debian: apt-get install gcc)");
        return;
    }
    let folder = std::env::temp_dir().join(format!("ravelin-ring-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let plain = KernelOptions::default();
    let half = KernelOptions { back: Back::Half, ..plain };
    let bit = KernelOptions { over: CopiedPart::Packed, back: Back::Bit, ..plain };
    for (name, text, options) in [("word", PROGRAM, plain), ("half", BIT, half), ("bit", BIT, bit)] {
        let program = compile_as(text, Decode::Lazy).program.expect("it compiles");
        let kernel = Kernel::new(&program, PORTS, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (source, built) = (folder.join(format!("{name}.c")), folder.join(name));
        // Where the ring comes round soonest, a worker takes its time.
        let text = kernel.persistent_text(Dialect::Plain);
        let entry = "const u32 entry = ENTRY(";
        assert_eq!(text.matches(entry).count(), 1, "{name}: the entry is read once");
        let text = text.replace(entry, &format!("if (ticket % 3 == 0) sched_yield();\n        {entry}"));
        fs::write(&source, format!("#include <sched.h>\n{text}{HOST}")).expect("it can be written");
        let output = Command::new("cc")
            .args([
                "-std=gnu99",
                "-O1",
                "-g",
                "-Wall",
                "-Werror",
                "-Wno-unused-label",
                "-Wno-unused-function",
            ])
            .args([
                "-Wno-unused-variable",
                "-Wno-unused-but-set-variable",
                "-fsanitize=thread",
                "-pthread",
                "-o",
            ])
            .args([&built, &source])
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(&built).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}", said.lines().take(30).collect::<Vec<_>>().join("\n"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "20000 seen, 0 wrong, 0 left\n", "{name}");
    }
    let _ = fs::remove_dir_all(&folder);
}
