//! The original's algorithms: a binary trie that is walked bit by bit and a loop over rules, as words for
//! devices and as Rust that does the same over the same words.
//!
//! The idea: a trie's node says where zeros and ones go on and what the prefix that ends there says; the
//! longest prefix is the last that said something. Rules are tried from the first on, field by field. Both
//! take what they find to the verdict word itself.

use super::device::Setting;
use super::functions::{Function, FunctionData};
use crate::device_run::{KernelCode, SlotKernel};
use exec::kernel::{Back, CopiedPart, Dialect, PAGE_BYTES};
use gpu::{DeviceError, Geometry, Host, HostLane, HostWarp, Input, Submission};
use offload::Whole;
use packet::{Batch, Verdict};
use std::sync::Arc;

/// The kernel's text, without the words that say which function and stride it is for.
const TEXT: &str = include_str!("naive.cl");
/// The bytes of a packet that the algorithms read, rounded up.
const HEADERS: usize = 48;
/// The protocol of rules for any.
const ANY: u32 = 256;

/// A function's tables as the original had them.
pub(super) struct Naive {
    function: Function,
    trie: Vec<u32>,
    rules: Vec<u32>,
    no_route: u32,
    no_rule: u32,
}

impl Naive {
    /// Puts the function's routes and rules into words.
    pub(super) fn new(data: &FunctionData) -> Naive {
        let mut trie = vec![0; 3];
        for route in data.routes.iter().filter(|_| data.function != Function::Firewall) {
            let mut node = 0;
            for bit in 0..u32::from(route.length) {
                let way = node * 3 + (route.bits as u32 >> (31 - bit) & 1) as usize;
                if trie[way] == 0 {
                    trie[way] = trie.len() as u32 / 3;
                    trie.extend([0; 3]);
                }
                node = trie[way] as usize;
            }
            trie[node * 3 + 2] = Verdict::send(route.next_hop as u16).bits();
        }
        let mut rules = vec![data.rules.len() as u32];
        // What passes goes on in the trie where there is one, as if it had fitted no rule.
        for (rule, permits) in &data.rules {
            let ports = |(low, high): (u16, u16)| u32::from(low) | u32::from(high) << 16;
            rules.extend([
                rule.source.address,
                rule.source.mask(),
                rule.destination.address,
                rule.destination.mask(),
                ports(rule.source_ports),
                ports(rule.destination_ports),
                rule.protocol.map_or(ANY, u32::from),
                if *permits { data.passed.bits() } else { data.denied.bits() },
            ]);
        }
        Naive {
            function: data.function,
            trie,
            rules,
            no_route: data.no_route.bits(),
            no_rule: data.passed.bits(),
        }
    }

    /// The tables of the kernel, in the order of its arguments.
    pub(super) fn tables(&self) -> Vec<&[u32]> {
        match self.function {
            Function::Lpm => vec![&self.trie],
            Function::Firewall => vec![&self.rules],
            Function::Both => vec![&self.rules, &self.trie],
        }
    }

    /// The kernel for packets so many bytes apart.
    pub(super) fn text(&self, stride: usize) -> String {
        let tables = match self.function {
            Function::Lpm => "#define TABLES , GLOBAL const u32 *trie\n#define TRIE trie\n",
            Function::Firewall => "#define TABLES , GLOBAL const u32 *rules\n#define RULES rules\n",
            Function::Both => {
                "#define TABLES , GLOBAL const u32 *rules, GLOBAL const u32 *trie\n#define RULES rules\n#define TRIE trie\n"
            }
        };
        let (no_route, no_rule) = (self.no_route, self.no_rule);
        format!(
            "#define STRIDE {stride}\n#define NO_ROUTE {no_route}u\n#define NO_RULE {no_rule}u\n{tables}{TEXT}"
        )
    }

    /// The verdict on a frame, which is IPv4 in Ethernet without options.
    #[inline]
    pub(super) fn verdict(&self, frame: &[u8]) -> Verdict {
        let Some(frame) = frame.first_chunk::<38>() else { return Verdict::PENDING };
        let word = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let mut said = self.no_rule;
        if self.function != Function::Lpm {
            let ports = if matches!(frame[23], 6 | 17) { word(34) } else { 0 };
            said = self.rule(word(26), word(30), ports, frame[23].into());
        }
        if self.function != Function::Firewall && said == self.no_rule {
            said = self.route(word(30));
        }
        Verdict::from_bits(said)
    }

    fn route(&self, address: u32) -> u32 {
        let (mut node, mut found) = (0, self.no_route);
        for bit in (0..=32).rev() {
            let here = self.trie[node * 3 + 2];
            if here != 0 {
                found = here;
            }
            if bit == 0 {
                break;
            }
            node = self.trie[node * 3 + (address >> (bit - 1) & 1) as usize] as usize;
            if node == 0 {
                break;
            }
        }
        found
    }

    fn rule(&self, src: u32, dst: u32, ports: u32, proto: u32) -> u32 {
        let within = |port: u32, range: u32| (range & 0xffff..=range >> 16).contains(&port);
        for rule in self.rules[1..].as_chunks::<8>().0 {
            if (src ^ rule[0]) & rule[1] == 0
                && (dst ^ rule[2]) & rule[3] == 0
                && within(ports >> 16, rule[4])
                && within(ports & 0xffff, rule[5])
                && (rule[6] == ANY || rule[6] == proto)
            {
                return rule[7];
            }
        }
        self.no_rule
    }
}

/// The algorithms as a kernel, for packets so many bytes apart.
#[derive(Clone)]
pub(super) struct NaiveKernel {
    naive: Arc<Naive>,
    pub(super) stride: usize,
}

impl NaiveKernel {
    /// The kernel in the form of a setting.
    ///
    /// # Errors
    /// There is no such form.
    pub(super) fn new(naive: &Arc<Naive>, setting: Setting) -> Result<NaiveKernel, String> {
        let stride = match (setting.over, setting.back) {
            (CopiedPart::Page, Back::Word) => PAGE_BYTES as usize,
            (CopiedPart::Header, Back::Word) => HEADERS,
            _ => return Err("the original's kernel has no such form".to_owned()),
        };
        Ok(NaiveKernel { naive: Arc::clone(naive), stride })
    }

    /// The room that a device needs for slots of so many packets.
    pub(super) fn geometry(&self, packets: usize, slots: usize, tables: usize) -> Geometry {
        Geometry {
            packets,
            stride: self.stride,
            columns: 0,
            verdict_bits: 32,
            record_words: 0,
            returns_bytes: false,
            slots,
            tables,
        }
    }
}

impl KernelCode for NaiveKernel {
    fn text(&self, _: Dialect, _: Submission) -> String {
        self.naive.text(self.stride)
    }

    fn host(&self, geometry: Geometry) -> Result<Host, DeviceError> {
        Host::new(Box::new(self.clone()), geometry, None)
    }
}

impl HostWarp for NaiveKernel {
    fn run(&self, lane: HostLane<'_>, _: &[Arc<Vec<u32>>]) -> u32 {
        self.naive.verdict(lane.bytes).bits()
    }
}

impl SlotKernel for NaiveKernel {
    fn gather(&mut self, memory: &[u8], batch: &Batch, whole: Whole, input: &mut Input<'_>) {
        let own = input.bytes.chunks_exact_mut(self.stride).skip(whole.before);
        for (start, bytes) in batch.frame[..batch.len].iter().zip(own) {
            let start = *start as usize;
            // Frames are followed by room in memory, so that a fixed length can be copied.
            match (self.stride, memory.get(start..start + 64)) {
                (HEADERS, Some(frame)) => bytes[..HEADERS].copy_from_slice(&frame[..HEADERS]),
                (_, Some(frame)) => bytes[..64].copy_from_slice(frame),
                _ => bytes.fill(0),
            }
        }
    }

    fn verdicts(&self, words: &[u32], before: usize, found: &mut [Verdict]) {
        let words = &words[before..];
        found.iter_mut().zip(words).for_each(|(verdict, word)| *verdict = Verdict::from_bits(*word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// What clang does not know of CUDA without its headers.
    const CUDA_WORDS: &str = "#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __forceinline__ inline __attribute__((always_inline))
struct places { unsigned x, y, z; };
extern __device__ const places threadIdx, blockIdx, blockDim;
";

    #[test]
    fn the_text_is_cuda_too() {
        for function in Function::ALL {
            let data = FunctionData::new(function, 50).expect("routes and packets");
            let text = Naive::new(&data).text(48);
            if gpu::compiler_version().is_ok() {
                gpu::compile_cuda(&text, 90).expect("NVIDIA's compiler takes it");
            }
            if Command::new("clang").arg("--version").output().is_err() {
                continue;
            }
            let path = std::env::temp_dir().join(format!("ravelin-naive-{}.cu", std::process::id()));
            fs::write(&path, format!("{CUDA_WORDS}{text}")).expect("it can be written");
            let clang = Command::new("clang")
                .args([
                    "-x",
                    "cuda",
                    "--cuda-device-only",
                    "--cuda-gpu-arch=sm_75",
                    "-nocudainc",
                    "-nocudalib",
                ])
                .args(["-S", "-O2", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unknown-cuda-version"])
                .arg(&path)
                .args(["-o", "-"])
                .output()
                .expect("clang runs");
            fs::remove_file(&path).expect("it was there");
            let said = String::from_utf8_lossy(&clang.stderr);
            assert!(clang.status.success(), "{}: {said}", function.name());
            let ptx = String::from_utf8_lossy(&clang.stdout);
            assert!(ptx.contains(".visible .entry run_packets("), "{}", function.name());
        }
    }
}
