//! The step that has another decoder, tshark, judge what Ravelin reads, decides and writes.

use super::program::ravelin;
use super::{Context, Outcome};
use anyhow::{Context as _, ensure};
use std::path::Path;
use std::process::Command;

/// What the firewall lets pass, in the words of a display filter: untagged IPv4, first fragment, a whole TCP
/// or UDP header to port 80 or 443. The last field of each header stands for the whole of it.
const WEB: &str = "eth.type == 0x0800 && ip.frag_offset == 0 && \
    ((tcp.urgent_pointer && (tcp.dstport == 80 || tcp.dstport == 443)) || \
    (udp.checksum && (udp.dstport == 80 || udp.dstport == 443)))";

/// Runs the firewall over the shipped capture and compares its counts, and the captures it writes, with what
/// tshark sees.
pub(super) fn tshark(context: &Context) -> anyhow::Result<Outcome> {
    if Command::new("tshark").arg("--version").output().is_err() {
        return Ok(Outcome::Skipped("tshark is not installed".to_string()));
    }
    let out = context.target.join("judge");
    let run = ravelin(context)
        .args(["run", "programs/firewall.rav", "--in", "captures/demo.pcapng", "--json", "--out"])
        .arg(&out)
        .output()?;
    ensure!(run.status.success(), "the firewall does not run: {}", String::from_utf8_lossy(&run.stderr));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).context("the report is no JSON")?;
    let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or(0);

    let capture = context.root.join("captures/demo.pcapng");
    same("packets in the capture", seen(&capture, "frame")?, number("/received/packets"))?;
    same("web packets", seen(&capture, WEB)?, number("/forwarded/packets") + number("/drops/hairpin"))?;
    let dropped = out.join("dropped.pcapng");
    for reason in ["not_web", "not_ipv4", "hairpin", "later_fragment"] {
        let filter = format!("frame.comment contains \"{reason}:\"");
        same(
            &format!("packets dropped as {reason}"),
            seen(&dropped, &filter)?,
            number(&format!("/drops/{reason}")),
        )?;
    }
    for index in 0..5 {
        let port = out.join(format!("port{}.pcapng", index + 1));
        let sent = number(&format!("/ports/{index}/transmitted"));
        same(&format!("packets sent to port {}", index + 1), seen(&port, "frame")?, sent)?;
    }
    Ok(Outcome::Passed)
}

/// How many packets of a capture a display filter shows; fragments are not put together.
fn seen(capture: &Path, filter: &str) -> anyhow::Result<u64> {
    let output = Command::new("tshark")
        .args(["-o", "ip.defragment:FALSE", "-T", "fields", "-e", "frame.number", "-Y", filter, "-r"])
        .arg(capture)
        .output()?;
    ensure!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout.iter().filter(|&&byte| byte == b'\n').count() as u64)
}

fn same(what: &str, tshark: u64, ravelin: u64) -> anyhow::Result<()> {
    println!("{what}: tshark {tshark}, ravelin {ravelin}");
    ensure!(ravelin > 0 && tshark == ravelin, "{what}: tshark sees {tshark}, ravelin {ravelin}");
    Ok(())
}
