//! A link that the kernel's netem and tbf emulate, with the same settings as [`super::TunLink`].
//!
//! The link is a pair of veth devices. At each end, netem delays and drops packets, and then tbf
//! queues them and limits their rate. Unlike the emulator of this crate, netem does not report its
//! lateness and has no rate traces. Its losses differ between runs, and its jitter reorders
//! packets.

use super::{DirectionShape, LinkRate, LinkShape, LossModel, NetworkNamespace, UnavailableError};
use serde::Deserialize;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

/// Limit of netem's queue, in packets. The queue also holds the packets in flight, which netem is
/// delaying.
const LIMIT: u32 = 1_000_000;
/// Burst of tbf in bytes, which is enough for two packets.
const BURST: u64 = 3_100;

/// A link, which disappears with its namespaces.
pub struct NetemLink {
    device: String,
    ends: [NetworkNamespace; 2],
    addresses: [Ipv4Addr; 2],
}

/// Counters of the packets that one end sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentCounters {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets lost by the loss model.
    pub lost: u64,
    /// Packets dropped by the full queue.
    pub dropped: u64,
}

/// The reason why netem cannot be used for a link.
#[derive(Debug, thiserror::Error)]
enum NetemError {
    #[error("netem cannot follow a rate trace; leave out by = \"netem\"")]
    RateTrace,
    #[error("cannot parse the output of tc: {0}")]
    Statistics(#[from] serde_json::Error),
}

/// Checks whether this kernel has netem and tbf, and whether `tc` is installed.
///
/// # Errors
/// `tc`, a kernel module or a permission is missing.
pub fn check_netem_available() -> Result<(), UnavailableError> {
    let probe = || {
        let inside = NetworkNamespace::new()?;
        run_tool(
            &inside,
            "tc",
            "qdisc add dev lo root handle 1: netem delay 1ms",
        )?;
        run_tool(
            &inside,
            "tc",
            "qdisc add dev lo parent 1: tbf rate 1mbit burst 5kb limit 5kb",
        )
    };
    probe().map(drop).map_err(UnavailableError::NetemLink)
}

impl NetemLink {
    /// Joins two namespaces by a link. `number` determines the addresses, in the same way as for
    /// [`super::TunLink`].
    ///
    /// # Errors
    /// `ip` or `tc` fails, or netem does not support the settings.
    pub fn start(
        first: &NetworkNamespace,
        second: &NetworkNamespace,
        number: u8,
        shape: &LinkShape,
    ) -> io::Result<NetemLink> {
        let device = format!("link{number}");
        let other = second.path();
        let pair = format!(
            "link add {device} type veth peer name {device} netns {}",
            other.display()
        );
        run_tool(first, "ip", &pair)?;
        let addresses = [1, 2].map(|end| Ipv4Addr::new(10, 77, number, end));
        for ((end, address), way) in [first, second]
            .into_iter()
            .zip(addresses)
            .zip([&shape.up, &shape.down])
        {
            run_tool(end, "ip", &format!("addr add {address}/30 dev {device}"))?;
            run_tool(end, "ip", &format!("link set {device} up"))?;
            for words in
                tc_commands(way, shape.queue_bytes(way), &device).map_err(io::Error::other)?
            {
                run_tool(end, "tc", &words)?;
            }
        }
        let ends = [first.try_clone()?, second.try_clone()?];
        Ok(NetemLink {
            device,
            ends,
            addresses,
        })
    }

    /// Returns the addresses of the first and the second end.
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// Reads the counters of both ends. The first end sends the packets of the up direction. The
    /// second end sends the packets of the down direction.
    ///
    /// # Errors
    /// `tc` fails, or its output cannot be parsed.
    pub fn read_sent_counters(&self) -> io::Result<[SentCounters; 2]> {
        let [first, second] = &self.ends;
        let read_counters = |end: &NetworkNamespace| {
            let json = run_tool(end, "tc", &format!("-s -j qdisc show dev {}", self.device))?;
            parse_sent_counters(&json).map_err(io::Error::other)
        };
        Ok([read_counters(first)?, read_counters(second)?])
    }
}

/// Returns the `tc` commands for one end.
fn tc_commands(
    way: &DirectionShape,
    queue_bytes: u64,
    device: &str,
) -> Result<Vec<String>, NetemError> {
    let micros = |time: std::time::Duration| format!("{}us", time.as_micros());
    let mut netem = format!("qdisc add dev {device} root handle 1: netem limit {LIMIT}");
    if !way.delay.is_zero() {
        netem += &format!(" delay {}", micros(way.delay));
        if !way.jitter.is_zero() {
            netem += &format!(" {}", micros(way.jitter));
        }
    }
    let percent = |share: f64| format!("{}%", share * 100.0);
    match way.loss {
        LossModel::None => {}
        LossModel::Independent(share) => netem += &format!(" loss random {}", percent(share)),
        LossModel::GilbertElliott {
            to_bad,
            to_good,
            good,
            bad,
        } => {
            let shares = [to_bad, to_good, bad, good].map(percent);
            netem += &format!(" loss gemodel {}", shares.join(" "));
        }
    }
    let mut all = vec![netem];
    match &way.rate {
        LinkRate::Unlimited => {}
        LinkRate::Constant(rate) => all.push(format!(
            "qdisc add dev {device} parent 1: handle 2: tbf rate {rate}bit burst {BURST} limit {}",
            queue_bytes.max(BURST)
        )),
        LinkRate::RateTrace(_) => return Err(NetemError::RateTrace),
    }
    Ok(all)
}

/// A queueing discipline in the output of `tc -s -j`.
#[derive(Deserialize)]
struct QdiscStatistics {
    kind: String,
    bytes: u64,
    drops: u64,
}

fn parse_sent_counters(json: &str) -> Result<SentCounters, NetemError> {
    let all: Vec<QdiscStatistics> = serde_json::from_str(json)?;
    let mut sent = SentCounters::default();
    for one in all {
        // The inner queueing discipline is the last in the list. Only the bytes that the inner
        // discipline sent have left the device.
        sent.bytes = one.bytes;
        match one.kind.as_str() {
            "netem" => sent.lost = one.drops,
            _ => sent.dropped = one.drops,
        }
    }
    // netem's counter of drops includes the packets that the queue inside netem dropped.
    sent.lost = sent.lost.saturating_sub(sent.dropped);
    Ok(sent)
}

/// Runs a tool inside a namespace and returns its standard output.
fn run_tool(inside: &NetworkNamespace, name: &str, words: &str) -> io::Result<String> {
    let output = inside.run_in_namespace(|| Command::new(name).args(words.split(' ')).output());
    let failed = |what: &dyn std::fmt::Display| io::Error::other(format!("{name} {words}: {what}"));
    let output = output.map_err(|error| failed(&error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::QueueSize;
    use std::time::Duration;

    #[test]
    fn link_settings_become_tc_commands() {
        let way = DirectionShape {
            rate: LinkRate::Constant(20_000_000),
            delay: Duration::from_millis(100),
            jitter: Duration::from_micros(1500),
            queue: QueueSize::Bytes(50_000),
            loss: LossModel::Independent(0.002),
        };
        let commands = tc_commands(&way, 50_000, "link0").unwrap();
        let netem = "qdisc add dev link0 root handle 1: netem limit 1000000 delay 100000us 1500us loss random 0.2%";
        let tbf =
            "qdisc add dev link0 parent 1: handle 2: tbf rate 20000000bit burst 3100 limit 50000";
        assert_eq!(commands, [netem, tbf]);
        let bursts = DirectionShape {
            loss: LossModel::from_bursts(0.5, 4.0),
            rate: LinkRate::Unlimited,
            ..way
        };
        let commands = tc_commands(&bursts, 0, "link0").unwrap();
        assert!(
            commands.len() == 1 && commands[0].ends_with("loss gemodel 25% 25% 100% 0%"),
            "{commands:?}"
        );
    }

    #[test]
    fn counters_of_tc_are_parsed() {
        let json = r#"[{"kind":"netem","handle":"1:","bytes":10,"packets":1,"drops":5},
            {"kind":"tbf","handle":"2:","bytes":9,"packets":1,"drops":2}]"#;
        let read = SentCounters {
            bytes: 9,
            lost: 3,
            dropped: 2,
        };
        assert_eq!(parse_sent_counters(json).unwrap(), read);
        assert!(parse_sent_counters("nothing").is_err());
    }
}
