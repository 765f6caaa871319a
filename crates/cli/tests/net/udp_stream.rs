//! UDP at a steady rate from host `a` to host `b`, of which the gateway may lose and overtake nothing.

use super::{Net, text};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

/// The stream, while it flows.
pub(crate) struct UdpStream {
    client: Child,
    server: Child,
}

impl UdpStream {
    /// Begins a stream of so many seconds to this address of `b`.
    pub(crate) fn begin(net: &Net, address: &str, seconds: u32) -> UdpStream {
        let server = net
            .at("b", "timeout", &["60", "iperf3", "-s", "-1", "-J"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("iperf3 runs");
        thread::sleep(Duration::from_millis(500));
        let seconds = seconds.to_string();
        let load =
            ["30", "iperf3", "-c", address, "-u", "-b", "20M", "-l", "200", "-t", &seconds, "-w", "4M"];
        let client = net.at("a", "timeout", &load).stdout(Stdio::null()).spawn().expect("iperf3 runs");
        UdpStream { client, server }
    }

    /// Whether it still flows.
    pub(crate) fn flows(&mut self) -> bool {
        self.client.try_wait().expect("is known").is_none()
    }

    /// Waits for its end: no datagram came out of order, and what is missing was lost elsewhere. On a busy
    /// machine the receiver may be too slow, or a gateway not on a processor for longer than its ring lasts:
    /// both are counted. `gateways` are all on the way, as [`Net::ask`] asks one what its ports are.
    pub(crate) fn arrives_whole(mut self, net: &Net, gateways: &[&dyn Fn() -> Value]) {
        assert!(self.client.wait().expect("ends").success());
        let output = self.server.wait_with_output().expect("ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let stream = &report["end"]["streams"][0]["udp"];
        assert_eq!(stream["out_of_order"], 0, "{stream}");
        let snmp = text(&net.run("b", "cat", &["/proc/net/snmp"]));
        let udp: Vec<&str> = snmp.lines().filter_map(|line| line.strip_prefix("Udp: ")).collect();
        let column = udp[0].split(' ').position(|name| name == "RcvbufErrors").expect("is counted");
        let at_receiver = udp[1].split(' ').nth(column).and_then(|count| count.parse::<u64>().ok());
        let in_rings: u64 = gateways
            .iter()
            .flat_map(|gateway| gateway()["now"]["ports"].as_array().expect("a list").clone())
            .map(|port| port["since_attached"]["ring_full"].as_u64().expect("is counted"))
            .sum();
        let elsewhere = at_receiver.expect("a number") + in_rings;
        let lost = stream["lost_packets"].as_u64().expect("a number");
        assert!(lost <= elsewhere, "{lost} datagrams are lost, of which {elsewhere} elsewhere: {stream}");
    }
}
