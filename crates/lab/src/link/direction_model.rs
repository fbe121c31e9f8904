//! A pure model of one direction of a link. It computes whether and when each packet arrives.
//!
//! The caller passes the time in nanoseconds since an arbitrary start, so that tests need no clock.

use super::packet_randomness::PacketRandomness;
use super::{DirectionShape, LinkRate, LinkShape};
use serde::Serialize;
use std::collections::VecDeque;

/// One direction.
#[derive(Debug)]
pub struct DirectionModel {
    way: DirectionShape,
    queue_bytes: u64,
    chance: PacketRandomness,
    jitter: PacketRandomness,
    /// Arrival time of the previous packet that was not lost.
    last_ns: u64,
    /// Time at which the bottleneck will have sent all accepted packets.
    free_ns: u64,
    /// For each packet that the bottleneck has not sent completely: the time at which it will be
    /// sent completely, and its length in bytes.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    /// Packets in flight, each with its arrival time.
    flying: VecDeque<(u64, Vec<u8>)>,
    counts: PacketCounts,
}

/// Packet counters of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Packets that entered this direction of the link, including dropped and lost packets.
    pub packets: u64,
    /// Bytes of the packets that entered, including dropped and lost packets.
    pub bytes: u64,
    /// Packets dropped by the full queue.
    pub dropped: u64,
    /// Packets lost after the bottleneck.
    pub lost: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes of the packets that arrived.
    pub delivered_bytes: u64,
    /// Maximum length of the queue, in bytes.
    pub queue_max_bytes: u64,
}

impl DirectionModel {
    /// Creates a direction of a link. The two directions need different values of `number`, so that
    /// their random streams differ.
    pub fn new(shape: &LinkShape, way: &DirectionShape, number: u64) -> DirectionModel {
        DirectionModel {
            way: way.clone(),
            queue_bytes: shape.queue_bytes(way),
            chance: PacketRandomness::new(shape.seed, number),
            jitter: PacketRandomness::new(!shape.seed, number),
            last_ns: 0,
            free_ns: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flying: VecDeque::new(),
            counts: PacketCounts::default(),
        }
    }

    /// Processes a packet that enters this direction of the link at `now_ns`. The packet may be
    /// dropped or lost.
    pub fn accept_packet(&mut self, now_ns: u64, packet: &[u8]) {
        let len = packet.len() as u64;
        self.counts.packets += 1;
        self.counts.bytes += len;
        self.dequeue_sent_packets(now_ns);
        // An idle bottleneck accepts a packet of any size, because the packet need not wait in the
        // queue.
        if self.waiting_bytes > 0 && self.waiting_bytes + len > self.queue_bytes {
            self.counts.dropped += 1;
            return;
        }
        let start_ns = now_ns.max(self.free_ns);
        let sent_ns = self.way.rate.transmission_end_ns(start_ns, len);
        if self.way.rate != LinkRate::Unlimited {
            self.free_ns = sent_ns;
            self.waiting.push_back((sent_ns, len));
            self.waiting_bytes += len;
            self.counts.queue_max_bytes = self.counts.queue_max_bytes.max(self.waiting_bytes);
        }
        let due_ns = sent_ns + self.draw_delay_ns();
        if self.chance.loses_packet(&self.way.loss) {
            self.counts.lost += 1;
            return;
        }
        // Jitter never reorders packets.
        self.last_ns = self.last_ns.max(due_ns);
        let due_ns = self.last_ns;
        self.flying.push_back((due_ns, packet.to_vec()));
    }

    /// Returns the arrival time of the next packet in flight.
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.flying.front().map(|(due_ns, _)| *due_ns)
    }

    /// Removes and returns the next packet that has arrived by `now_ns`, with its arrival time.
    pub fn pop_arrived(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        self.next_arrival_ns().filter(|due_ns| *due_ns <= now_ns)?;
        let (due_ns, packet) = self.flying.pop_front()?;
        self.counts.delivered += 1;
        self.counts.delivered_bytes += packet.len() as u64;
        Some((due_ns, packet))
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    fn dequeue_sent_packets(&mut self, now_ns: u64) {
        while let Some((sent_ns, len)) = self.waiting.front().copied() {
            if sent_ns > now_ns {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= len;
        }
    }

    fn draw_delay_ns(&mut self) -> u64 {
        let (delay, jitter) = (
            self.way.delay.as_nanos() as f64,
            self.way.jitter.as_nanos() as f64,
        );
        if jitter == 0.0 {
            return delay as u64;
        }
        (delay + (2.0 * self.jitter.next_unit() - 1.0) * jitter).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LossModel, QueueSize};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn direction_shape(
        rate_bits_per_s: Option<u64>,
        queue: u64,
        loss: LossModel,
    ) -> DirectionShape {
        DirectionShape {
            rate: rate_bits_per_s.map_or(LinkRate::Unlimited, LinkRate::Constant),
            delay: Duration::from_millis(20),
            jitter: Duration::ZERO,
            queue: QueueSize::Bytes(queue),
            loss,
        }
    }

    fn create_model(way: DirectionShape) -> DirectionModel {
        let shape = LinkShape {
            down: way.clone(),
            up: way.clone(),
            seed: 7,
        };
        DirectionModel::new(&shape, &way, 0)
    }

    fn drain_all(pipe: &mut DirectionModel) -> Vec<u64> {
        std::iter::from_fn(|| pipe.pop_arrived(u64::MAX).map(|(due, _)| due)).collect()
    }

    #[test]
    fn packets_take_their_air_time_and_the_delay() {
        // The bottleneck needs one millisecond for 1500 bytes at 12 Mbit/s.
        let mut pipe = create_model(direction_shape(Some(12_000_000), 1 << 20, LossModel::None));
        for _ in 0..3 {
            pipe.accept_packet(5 * MS, &[0; 1500]);
        }
        pipe.accept_packet(100 * MS, &[0; 750]);
        assert_eq!(pipe.next_arrival_ns(), Some(26 * MS));
        assert_eq!(pipe.pop_arrived(26 * MS - 1), None);
        let due = [26 * MS, 27 * MS, 28 * MS, 120 * MS + MS / 2];
        assert_eq!(drain_all(&mut pipe), due);
    }

    #[test]
    fn without_a_rate_only_the_delay_counts() {
        let mut pipe = create_model(direction_shape(None, 0, LossModel::None));
        for _ in 0..1000 {
            pipe.accept_packet(0, &[0; 1500]);
        }
        assert_eq!(drain_all(&mut pipe), vec![20 * MS; 1000]);
        assert_eq!(pipe.counts().dropped, 0);
    }

    #[test]
    fn a_full_queue_drops_packets_and_drains_at_the_rate() {
        let mut pipe = create_model(direction_shape(Some(12_000_000), 6000, LossModel::None));
        for _ in 0..10 {
            pipe.accept_packet(0, &[0; 1500]);
        }
        assert_eq!(pipe.counts().dropped, 6);
        assert_eq!(pipe.counts().queue_max_bytes, 6000);
        // After 2 ms, the bottleneck has sent two packets, so that the queue has room for two more.
        for _ in 0..10 {
            pipe.accept_packet(2 * MS, &[0; 1500]);
        }
        assert_eq!(pipe.counts().dropped, 14);
        assert_eq!(drain_all(&mut pipe).len(), 6);
    }

    #[test]
    fn an_idle_bottleneck_accepts_a_packet_longer_than_its_queue() {
        let mut pipe = create_model(direction_shape(Some(12_000_000), 0, LossModel::None));
        pipe.accept_packet(0, &[0; 1500]);
        pipe.accept_packet(0, &[0; 1500]);
        assert_eq!((pipe.counts().dropped, drain_all(&mut pipe).len()), (1, 1));
    }

    #[test]
    fn jitter_spreads_around_the_delay_and_keeps_order() {
        let mut pipe = create_model(DirectionShape {
            jitter: Duration::from_millis(8),
            ..direction_shape(None, 0, LossModel::None)
        });
        // The packets are sent 100 ms apart, so that they do not delay each other.
        for n in 0..2000 {
            pipe.accept_packet(n * 100 * MS, &[0; 100]);
        }
        let delays: Vec<u64> = (0..)
            .zip(drain_all(&mut pipe))
            .map(|(n, due)| due - n * 100 * MS)
            .collect();
        assert!(
            delays
                .iter()
                .all(|delay| (12 * MS..=28 * MS).contains(delay))
        );
        let mean = delays.iter().sum::<u64>() / 2000;
        assert!(mean.abs_diff(20 * MS) < MS / 2, "{mean}");
        // Packets that are sent at the same time stay in order.
        for _ in 0..2000 {
            pipe.accept_packet(300_000 * MS, &[0; 100]);
        }
        assert!(drain_all(&mut pipe).is_sorted());
    }

    #[test]
    fn losses_have_the_requested_share_use_air_time_and_repeat() {
        let lossy = || {
            create_model(direction_shape(
                Some(12_000_000),
                1 << 40,
                LossModel::Independent(0.02),
            ))
        };
        let (mut a, mut b) = (lossy(), lossy());
        for pipe in [&mut a, &mut b] {
            for _ in 0..100_000 {
                pipe.accept_packet(0, &[0; 1500]);
            }
        }
        let lost = a.counts().lost as f64;
        // The tolerance is four standard deviations of the binomial distribution.
        assert!((lost - 2000.0).abs() < 4.0 * (2000.0_f64 * 0.98).sqrt());
        let (a, b) = (drain_all(&mut a), drain_all(&mut b));
        assert_eq!(a, b);
        assert!(a.last().unwrap() >= &(99_000 * MS));
    }
}
