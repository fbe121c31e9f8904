//! A running link, in which one thread forwards packets between two TUN devices.

use super::lateness::LatenessMeter;
use super::{
    DirectionModel, LatenessPercentiles, LinkShape, MTU, NetworkNamespace, PacketCounts,
    system_calls,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Queue length of each TUN device, in packets. Packets wait in this queue until the thread reads
/// them.
const QUEUED_ORDERS_MAX: u32 = 10_000;
/// Maximum number of packets that the thread reads from one device before it reads from the other
/// device.
const BATCH: usize = 64;

/// A link. Dropping this value stops the link.
pub struct TunLink {
    shared: Arc<SharedLinkState>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    shape: LinkShape,
    started: Instant,
    addresses: [Ipv4Addr; 2],
}

/// Statistics of a link.
#[derive(Debug, Clone, Serialize)]
pub struct LinkReport {
    /// Settings of the link.
    pub shape: LinkShape,
    /// Seconds since the link was started.
    pub seconds: f64,
    /// Whether the link's thread has real-time priority (`SCHED_FIFO`).
    pub real_time: bool,
    /// Counts of the packets that are sent to the first namespace.
    pub down: PacketCounts,
    /// Counts of the packets that are sent to the second namespace.
    pub up: PacketCounts,
    /// Percentiles of the delivery lateness, in microseconds.
    pub lateness_us: LatenessPercentiles,
    /// Number of packets that the receiving namespace rejected.
    pub refused: u64,
}

struct SharedLinkState(Mutex<LinkState>);

struct LinkState {
    down: DirectionModel,
    up: DirectionModel,
    meter: LatenessMeter,
    real_time: bool,
    refused: u64,
    ending: bool,
}

impl SharedLinkState {
    fn lock_state(&self) -> MutexGuard<'_, LinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TunLink {
    /// Connects two namespaces by a link with this number. The first end gets the address
    /// `10.77.NUMBER.1`, and the second end gets `10.77.NUMBER.2`. Each namespace gets an interface
    /// `linkNUMBER`.
    ///
    /// # Errors
    /// The process is not allowed to create a TUN device, or the system does not provide TUN
    /// devices.
    pub fn start(
        first: &NetworkNamespace,
        second: &NetworkNamespace,
        number: u8,
        shape: LinkShape,
    ) -> io::Result<TunLink> {
        let addresses = [1, 2].map(|end| Ipv4Addr::new(10, 77, number, end));
        let ends = [
            create_device(first, number, addresses[0])?,
            create_device(second, number, addresses[1])?,
        ];
        let [down, up] = create_direction_models(&shape, number);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let woken = wake.try_clone()?;
        let shared = Arc::new(SharedLinkState(Mutex::new(LinkState {
            down,
            up,
            meter: LatenessMeter::new().map_err(io::Error::other)?,
            real_time: false,
            refused: 0,
            ending: false,
        })));
        let (started, thread_state) = (Instant::now(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name(format!("link{number}"))
            .spawn(move || forward_packets(&thread_state, &ends, &woken, started))?;
        Ok(TunLink {
            shared,
            wake,
            thread: Some(thread),
            shape,
            started,
            addresses,
        })
    }

    /// Returns the addresses of the first and the second end.
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// Returns the statistics so far.
    pub fn report(&self) -> LinkReport {
        let state = self.shared.lock_state();
        LinkReport {
            shape: self.shape.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            real_time: state.real_time,
            down: state.down.counts(),
            up: state.up.counts(),
            lateness_us: state.meter.percentiles(),
            refused: state.refused,
        }
    }
}

impl Drop for TunLink {
    fn drop(&mut self) {
        self.shared.lock_state().ending = true;
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Creates the models of both directions (down and up). Each direction of each link has its own
/// random streams. Otherwise, all links of a run would lose the packets at the same positions.
fn create_direction_models(shape: &LinkShape, number: u8) -> [DirectionModel; 2] {
    let stream = 2 * u64::from(number);
    [
        DirectionModel::new(shape, &shape.down, stream),
        DirectionModel::new(shape, &shape.up, stream + 1),
    ]
}

fn create_device(namespace: &NetworkNamespace, number: u8, address: Ipv4Addr) -> io::Result<File> {
    namespace.run_in_namespace(|| {
        let name = format!("link{number}");
        let file = system_calls::open_tun(&name)?;
        system_calls::configure_interface(&name, address, MTU, QUEUED_ORDERS_MAX)?;
        // Disables IPv6, so that the kernel sends no IPv6 solicitations over the link. Ignores
        // errors, because a kernel without IPv6 does not have this file.
        let ipv6 = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        let _ = std::fs::write(ipv6, "1");
        system_calls::bring_up_interface(&name)?;
        Ok(file)
    })
}

/// Forwards packets between the devices until the link ends.
fn forward_packets(shared: &SharedLinkState, ends: &[File; 2], woken: &OwnedFd, started: Instant) {
    // Requests a timer slack of 1 ns, because the default slack of 50 µs would make packets late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    shared.lock_state().real_time = system_calls::enable_real_time();
    let now = || started.elapsed().as_nanos() as u64;
    let mut buffer = vec![0; 65536];
    loop {
        let next_arrival_ns = {
            let state = &mut *shared.lock_state();
            if state.ending {
                return;
            }
            read_packets(&mut state.up, &ends[0], &mut buffer, &now);
            read_packets(&mut state.down, &ends[1], &mut buffer, &now);
            write_packets(state, ends, &now);
            let next = [state.up.next_arrival_ns(), state.down.next_arrival_ns()];
            next.into_iter().flatten().min()
        };
        let timeout = next_arrival_ns.map(|due_ns| timespec(due_ns.saturating_sub(now())));
        let [first, second] = ends;
        let mut fds = [
            PollFd::new(first, PollFlags::IN),
            PollFd::new(second, PollFlags::IN),
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
        ];
        // Ignores errors, such as an interruption by a signal, because the next iteration checks
        // all devices again.
        let _ = poll(&mut fds, timeout.as_ref());
        let _ = rustix::io::read(woken, &mut [0; 8]);
    }
}

fn read_packets(
    pipe: &mut DirectionModel,
    mut from: &File,
    buffer: &mut [u8],
    now: &impl Fn() -> u64,
) {
    for _ in 0..BATCH {
        match from.read(buffer) {
            Ok(len) => pipe.accept_packet(now(), buffer.get(..len).unwrap_or_default()),
            Err(_) => return,
        }
    }
}

fn write_packets(state: &mut LinkState, ends: &[File; 2], now: &impl Fn() -> u64) {
    for (pipe, mut end) in [(&mut state.down, &ends[0]), (&mut state.up, &ends[1])] {
        while let Some((due_ns, packet)) = pipe.pop_arrived(now()) {
            if end.write(&packet).is_err() {
                state.refused += 1;
            }
            state.meter.record_lateness(now().saturating_sub(due_ns));
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{DirectionShape, LinkRate, LossModel, QueueSize};
    use std::time::Duration;

    /// Returns the positions of the packets that arrive.
    fn surviving_packets(mut model: DirectionModel) -> Vec<u8> {
        (0..200).for_each(|n| model.accept_packet(0, &[n]));
        std::iter::from_fn(|| model.pop_arrived(u64::MAX))
            .filter_map(|(_, packet)| packet.first().copied())
            .collect()
    }

    #[test]
    fn every_direction_of_every_link_loses_other_packets() {
        let way = DirectionShape {
            rate: LinkRate::Unlimited,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            queue: QueueSize::Bytes(0),
            loss: LossModel::Independent(0.5),
        };
        let (down, up) = (way.clone(), way.clone());
        let shape = LinkShape { down, up, seed: 7 };
        let models = (0..3).flat_map(|number| create_direction_models(&shape, number));
        let mut survivors: Vec<Vec<u8>> = models.map(surviving_packets).collect();
        // The first link keeps the streams of earlier versions, so that its runs can be repeated.
        for (number, survivors) in (0..2).zip(&survivors) {
            let earlier = DirectionModel::new(&shape, &way, number);
            assert_eq!(*survivors, surviving_packets(earlier));
        }
        survivors.sort();
        survivors.dedup();
        assert_eq!(survivors.len(), 6);
    }
}
