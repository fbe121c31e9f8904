//! One direction of a link as arithmetic: when, and whether, each packet arrives.
//!
//! Time is an argument, in nanoseconds from any moment, so the model is judged without a clock.

use super::chance::Chance;
use super::{Rate, Shape, Way};
use serde::Serialize;
use std::collections::VecDeque;

/// One direction.
#[derive(Debug)]
pub struct Pipe {
    way: Way,
    queue_bytes: u64,
    chance: Chance,
    jitter: Chance,
    /// When the packet before is due.
    last_ns: u64,
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
            jitter: Chance::new(!shape.seed, number),
            last_ns: 0,
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
        let start_ns = now_ns.max(self.free_ns);
        let sent_ns = self.way.rate.through_ns(start_ns, len);
        if self.way.rate != Rate::Unlimited {
            self.free_ns = sent_ns;
            self.waiting.push_back((sent_ns, len));
            self.waiting_bytes += len;
            self.counts.queue_max_bytes = self.counts.queue_max_bytes.max(self.waiting_bytes);
        }
        let due_ns = sent_ns + self.delay_ns();
        if self.chance.loses(&self.way.loss) {
            self.counts.lost += 1;
            return;
        }
        // Jitter delays, it never lets one packet overtake another.
        self.last_ns = self.last_ns.max(due_ns);
        let due_ns = self.last_ns;
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

    fn delay_ns(&mut self) -> u64 {
        let (delay, jitter) = (
            self.way.delay.as_nanos() as f64,
            self.way.jitter.as_nanos() as f64,
        );
        if jitter == 0.0 {
            return delay as u64;
        }
        (delay + (2.0 * self.jitter.unit() - 1.0) * jitter).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Loss, Queue};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn way(rate_bits_per_s: Option<u64>, queue: u64, loss: Loss) -> Way {
        Way {
            rate: rate_bits_per_s.map_or(Rate::Unlimited, Rate::Constant),
            delay: Duration::from_millis(20),
            jitter: Duration::ZERO,
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
    fn jitter_spreads_around_the_delay_and_keeps_order() {
        let mut pipe = pipe(Way {
            jitter: Duration::from_millis(8),
            ..way(None, 0, Loss::None)
        });
        // Far apart, so that order holds nothing back.
        for n in 0..2000 {
            pipe.take(n * 100 * MS, &[0; 100]);
        }
        let delays: Vec<u64> = (0..)
            .zip(all(&mut pipe))
            .map(|(n, due)| due - n * 100 * MS)
            .collect();
        assert!(
            delays
                .iter()
                .all(|delay| (12 * MS..=28 * MS).contains(delay))
        );
        let mean = delays.iter().sum::<u64>() / 2000;
        assert!(mean.abs_diff(20 * MS) < MS / 2, "{mean}");
        // At once: in order all the same.
        for _ in 0..2000 {
            pipe.take(300_000 * MS, &[0; 100]);
        }
        assert!(all(&mut pipe).is_sorted());
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
