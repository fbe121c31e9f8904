//! The same link by the kernel's own netem and tbf, where it has them and somebody prefers them.
//!
//! A pair of veth devices: what leaves either end is delayed and lost by netem, then kept to its rate
//! by tbf with its queue. Unlike ours it does not say how late it was, its losses differ from run to
//! run, jitter puts packets out of order, and its rate is constant.

use super::{Loss, Namespace, Rate, Shape, Way};
use serde::Deserialize;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

/// Packets on their way at most: netem counts those that it delays.
const LIMIT: u32 = 1_000_000;
/// Bytes that tbf sends at once: two packets.
const BURST: u64 = 3_100;

/// A link; it goes with its namespaces.
pub struct Netem {
    device: String,
    ends: [Namespace; 2],
    addresses: [Ipv4Addr; 2],
}

/// What one end has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that have left.
    pub bytes: u64,
    /// Packets that were lost as was asked for.
    pub lost: u64,
    /// Packets that found no room in the queue.
    pub dropped: u64,
}

/// Whether this kernel has netem and tbf, and `ip` and `tc` are installed.
///
/// # Errors
/// A sentence with what is missing.
pub fn netem_available() -> Result<(), String> {
    let probe = || {
        let inside = Namespace::new()?;
        tool(
            &inside,
            "tc",
            "qdisc add dev lo root handle 1: netem delay 1ms",
        )?;
        tool(
            &inside,
            "tc",
            "qdisc add dev lo parent 1: tbf rate 1mbit burst 5kb limit 5kb",
        )
    };
    let missing = |error: io::Error| format!("this machine has no netem: {error}");
    probe().map(drop).map_err(missing)
}

impl Netem {
    /// Joins two namespaces by link `number`, with the addresses that [`super::Link`] would give.
    ///
    /// # Errors
    /// What `ip` or `tc` says, or that netem cannot do what is asked for.
    pub fn start(
        first: &Namespace,
        second: &Namespace,
        number: u8,
        shape: &Shape,
    ) -> io::Result<Netem> {
        let device = format!("link{number}");
        let other = second.path();
        let pair = format!(
            "link add {device} type veth peer name {device} netns {}",
            other.display()
        );
        tool(first, "ip", &pair)?;
        let addresses = [1, 2].map(|end| Ipv4Addr::new(10, 77, number, end));
        for ((end, address), way) in [first, second]
            .into_iter()
            .zip(addresses)
            .zip([&shape.up, &shape.down])
        {
            tool(end, "ip", &format!("addr add {address}/30 dev {device}"))?;
            tool(end, "ip", &format!("link set {device} up"))?;
            for words in words(way, shape.queue_bytes(way), &device).map_err(io::Error::other)? {
                tool(end, "tc", &words)?;
            }
        }
        let ends = [first.again()?, second.again()?];
        Ok(Netem {
            device,
            ends,
            addresses,
        })
    }

    /// Of the first namespace's end, and of the second's.
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// What each end has sent: the first's is what goes up, the second's what comes down.
    ///
    /// # Errors
    /// What `tc` says.
    pub fn sent(&self) -> io::Result<[Sent; 2]> {
        let [first, second] = &self.ends;
        let ask = |end: &Namespace| {
            let said = tool(end, "tc", &format!("-s -j qdisc show dev {}", self.device))?;
            sent(&said).map_err(io::Error::other)
        };
        Ok([ask(first)?, ask(second)?])
    }
}

/// What `tc` is told for one end.
fn words(way: &Way, queue_bytes: u64, device: &str) -> Result<Vec<String>, String> {
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
        Loss::None => {}
        Loss::Independent(share) => netem += &format!(" loss random {}", percent(share)),
        Loss::GilbertElliott {
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
        Rate::Unlimited => {}
        Rate::Constant(rate) => all.push(format!(
            "qdisc add dev {device} parent 1: handle 2: tbf rate {rate}bit burst {BURST} limit {}",
            queue_bytes.max(BURST)
        )),
        Rate::Trace(_) => return Err("netem's rate is constant: a trace is ours alone".into()),
    }
    Ok(all)
}

/// A queueing discipline, as `tc -s -j` tells of it.
#[derive(Deserialize)]
struct Discipline {
    kind: String,
    bytes: u64,
    drops: u64,
}

fn sent(said: &str) -> Result<Sent, String> {
    let all: Vec<Discipline> =
        serde_json::from_str(said).map_err(|error| format!("tc: {error}"))?;
    let mut sent = Sent::default();
    for one in all {
        // The inner one comes last: what it has sent has left.
        sent.bytes = one.bytes;
        match one.kind.as_str() {
            "netem" => sent.lost = one.drops,
            _ => sent.dropped = one.drops,
        }
    }
    // netem counts what the queue inside it drops as drops of its own.
    sent.lost = sent.lost.saturating_sub(sent.dropped);
    Ok(sent)
}

/// Runs a tool inside; what it said.
fn tool(inside: &Namespace, name: &str, words: &str) -> io::Result<String> {
    let output = inside.within(|| Command::new(name).args(words.split(' ')).output());
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
    use crate::link::Queue;
    use std::time::Duration;

    #[test]
    fn what_is_asked_for_in_netems_words() {
        let way = Way {
            rate: Rate::Constant(20_000_000),
            delay: Duration::from_millis(100),
            jitter: Duration::from_micros(1500),
            queue: Queue::Bytes(50_000),
            loss: Loss::Independent(0.002),
        };
        let said = words(&way, 50_000, "link0").unwrap();
        let netem = "qdisc add dev link0 root handle 1: netem limit 1000000 delay 100000us 1500us loss random 0.2%";
        let tbf =
            "qdisc add dev link0 parent 1: handle 2: tbf rate 20000000bit burst 3100 limit 50000";
        assert_eq!(said, [netem, tbf]);
        let bursts = Way {
            loss: Loss::bursts(0.5, 4.0),
            rate: Rate::Unlimited,
            ..way
        };
        let said = words(&bursts, 0, "link0").unwrap();
        assert!(
            said.len() == 1 && said[0].ends_with("loss gemodel 25% 25% 100% 0%"),
            "{said:?}"
        );
    }

    #[test]
    fn what_tc_says_is_read() {
        let said = r#"[{"kind":"netem","handle":"1:","bytes":10,"packets":1,"drops":5},
            {"kind":"tbf","handle":"2:","bytes":9,"packets":1,"drops":2}]"#;
        let read = Sent {
            bytes: 9,
            lost: 3,
            dropped: 2,
        };
        assert_eq!(sent(said), Ok(read));
        assert!(sent("nothing").is_err());
    }
}
