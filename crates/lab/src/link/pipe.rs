//! One direction of a link as arithmetic: when, and whether, each packet arrives.
//!
//! Time is an argument, in nanoseconds from any moment, so the model is judged without a clock.

use super::{Loss, Shape, Way};
use serde::Serialize;
use std::collections::VecDeque;

/// One direction.
#[derive(Debug)]
pub struct Pipe {
    way: Way,
    queue_bytes: u64,
    chance: Chance,
    /// When the bottleneck has sent what it has taken so far.
    free_ns: u64,
    /// Packets not yet through the bottleneck: when each will be, and its length.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    /// Packets on their way: when each arrives.
    flying: VecDeque<(u64, Vec<u8>)>,
    counts: Counts,
}

/// What became of a direction's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that came.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that found no room in the queue.
    pub dropped: u64,
    /// Packets lost after the bottleneck.
    pub lost: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Most bytes that ever waited.
    pub queue_max_bytes: u64,
}

impl Pipe {
    /// A direction of this link; `number` tells its chance from the other direction's.
    pub fn new(shape: &Shape, way: &Way, number: u64) -> Pipe {
        Pipe {
            way: way.clone(),
            queue_bytes: shape.queue_bytes(way),
            chance: Chance::new(shape.seed, number),
            free_ns: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flying: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A packet comes now.
    pub fn take(&mut self, now_ns: u64, packet: &[u8]) {
        let len = packet.len() as u64;
        self.counts.packets += 1;
        self.counts.bytes += len;
        self.forget_sent(now_ns);
        // An idle bottleneck takes any packet: the queue is what waits behind it.
        if self.waiting_bytes > 0 && self.waiting_bytes + len > self.queue_bytes {
            self.counts.dropped += 1;
            return;
        }
        let sent_ns = self.now_or_free(now_ns) + self.air_ns(len);
        if self.way.rate_bits_per_s.is_some() {
            self.free_ns = sent_ns;
            self.waiting.push_back((sent_ns, len));
            self.waiting_bytes += len;
            self.counts.queue_max_bytes = self.counts.queue_max_bytes.max(self.waiting_bytes);
        }
        if self.chance.loses(&self.way.loss) {
            self.counts.lost += 1;
            return;
        }
        let due_ns = sent_ns + self.way.delay.as_nanos() as u64;
        self.flying.push_back((due_ns, packet.to_vec()));
    }

    /// When the next packet arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.flying.front().map(|(due_ns, _)| *due_ns)
    }

    /// The next packet that has arrived by now, and when it was due.
    pub fn arrived(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        let (due_ns, packet) = self.flying.pop_front()?;
        self.counts.delivered += 1;
        self.counts.delivered_bytes += packet.len() as u64;
        Some((due_ns, packet))
    }

    /// What became of all packets so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn forget_sent(&mut self, now_ns: u64) {
        while let Some((sent_ns, len)) = self.waiting.front().copied() {
            if sent_ns > now_ns {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= len;
        }
    }

    fn now_or_free(&self, now_ns: u64) -> u64 {
        now_ns.max(self.free_ns)
    }

    fn air_ns(&self, len: u64) -> u64 {
        match self.way.rate_bits_per_s {
            Some(rate) => (u128::from(len) * 8_000_000_000 / u128::from(rate.max(1))) as u64,
            None => 0,
        }
    }
}

/// Chance by the packet's number: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn new(seed: u64, number: u64) -> Chance {
        Chance(mix(seed ^ mix(number.wrapping_add(1))))
    }

    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn loses(&mut self, loss: &Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(share) => self.unit() < *share,
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Queue;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn way(rate_bits_per_s: Option<u64>, queue: u64, loss: Loss) -> Way {
        Way {
            rate_bits_per_s,
            delay: Duration::from_millis(20),
            queue: Queue::Bytes(queue),
            loss,
        }
    }

    fn pipe(way: Way) -> Pipe {
        let shape = Shape {
            down: way.clone(),
            up: way.clone(),
            seed: 7,
        };
        Pipe::new(&shape, &way, 0)
    }

    fn all(pipe: &mut Pipe) -> Vec<u64> {
        std::iter::from_fn(|| pipe.arrived(u64::MAX).map(|(due, _)| due)).collect()
    }

    #[test]
    fn packets_take_their_air_time_and_the_delay() {
        // 1500 bytes at 12 Mbit/s take one millisecond.
        let mut pipe = pipe(way(Some(12_000_000), 1 << 20, Loss::None));
        for _ in 0..3 {
            pipe.take(5 * MS, &[0; 1500]);
        }
        pipe.take(100 * MS, &[0; 750]);
        assert_eq!(pipe.next_ns(), Some(26 * MS));
        assert_eq!(pipe.arrived(26 * MS - 1), None);
        let due = [26 * MS, 27 * MS, 28 * MS, 120 * MS + MS / 2];
        assert_eq!(all(&mut pipe), due);
    }

    #[test]
    fn without_a_rate_only_the_delay_counts() {
        let mut pipe = pipe(way(None, 0, Loss::None));
        for _ in 0..1000 {
            pipe.take(0, &[0; 1500]);
        }
        assert_eq!(all(&mut pipe), vec![20 * MS; 1000]);
        assert_eq!(pipe.counts().dropped, 0);
    }

    #[test]
    fn the_queue_drops_what_finds_no_room_and_empties_at_the_rate() {
        let mut pipe = pipe(way(Some(12_000_000), 6000, Loss::None));
        for _ in 0..10 {
            pipe.take(0, &[0; 1500]);
        }
        assert_eq!(pipe.counts().dropped, 6);
        assert_eq!(pipe.counts().queue_max_bytes, 6000);
        // After two packets' time there is room for two more.
        for _ in 0..10 {
            pipe.take(2 * MS, &[0; 1500]);
        }
        assert_eq!(pipe.counts().dropped, 14);
        assert_eq!(all(&mut pipe).len(), 6);
    }

    #[test]
    fn an_idle_bottleneck_takes_a_packet_longer_than_its_queue() {
        let mut pipe = pipe(way(Some(12_000_000), 0, Loss::None));
        pipe.take(0, &[0; 1500]);
        pipe.take(0, &[0; 1500]);
        assert_eq!((pipe.counts().dropped, all(&mut pipe).len()), (1, 1));
    }

    #[test]
    fn losses_are_as_many_as_asked_spend_air_time_and_repeat() {
        let lossy = || pipe(way(Some(12_000_000), 1 << 40, Loss::Independent(0.02)));
        let (mut a, mut b) = (lossy(), lossy());
        for pipe in [&mut a, &mut b] {
            for _ in 0..100_000 {
                pipe.take(0, &[0; 1500]);
            }
        }
        let lost = a.counts().lost as f64;
        // Four standard deviations of a binomial.
        assert!((lost - 2000.0).abs() < 4.0 * (2000.0_f64 * 0.98).sqrt());
        let (a, b) = (all(&mut a), all(&mut b));
        assert_eq!(a, b);
        assert!(a.last().unwrap() >= &(99_000 * MS));
    }
}
