//! A link at work: one thread between two TUN devices.

use super::lateness::Meter;
use super::{Counts, Lateness, MTU, Namespace, Pipe, Shape, kernel};
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

/// Packets that may wait in the kernel to be read: what comes between two turns of the thread.
const WAITING: u32 = 10_000;
/// Packets read from one side before the other is looked after.
const BATCH: usize = 64;

/// A link; it ends when dropped.
pub struct Link {
    shared: Arc<Shared>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    shape: Shape,
    began: Instant,
    addresses: [Ipv4Addr; 2],
}

/// What a link has done so far.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// As it was asked for.
    pub shape: Shape,
    /// Since it began.
    pub seconds: f64,
    /// Whether the thread went before ordinary ones (`SCHED_FIFO`).
    pub real_time: bool,
    /// To the first namespace.
    pub down: Counts,
    /// To the second.
    pub up: Counts,
    /// How late packets were given out, in microseconds.
    pub lateness_us: Lateness,
    /// Packets that the receiving namespace refused.
    pub refused: u64,
}

struct Shared(Mutex<State>);

struct State {
    down: Pipe,
    up: Pipe,
    meter: Meter,
    real_time: bool,
    refused: u64,
    ending: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// Joins two namespaces by link `number` (below 256): the first gets the address
    /// `10.77.NUMBER.1`, the second `10.77.NUMBER.2`, and each an interface `linkNUMBER`.
    ///
    /// # Errors
    /// The kernel's, mostly that only root may, or that there is no TUN.
    pub fn start(
        first: &Namespace,
        second: &Namespace,
        number: u8,
        shape: Shape,
    ) -> io::Result<Link> {
        let addresses = [1, 2].map(|end| Ipv4Addr::new(10, 77, number, end));
        let ends = [
            device(first, number, addresses[0])?,
            device(second, number, addresses[1])?,
        ];
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let woken = wake.try_clone()?;
        let shared = Arc::new(Shared(Mutex::new(State {
            down: Pipe::new(&shape, &shape.down, 0),
            up: Pipe::new(&shape, &shape.up, 1),
            meter: Meter::new().map_err(io::Error::other)?,
            real_time: false,
            refused: 0,
            ending: false,
        })));
        let (began, theirs) = (Instant::now(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name(format!("link{number}"))
            .spawn(move || serve(&theirs, &ends, &woken, began))?;
        Ok(Link {
            shared,
            wake,
            thread: Some(thread),
            shape,
            began,
            addresses,
        })
    }

    /// Of the first namespace's end, and of the second's.
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// What it has done so far.
    pub fn report(&self) -> Report {
        let state = self.shared.state();
        Report {
            shape: self.shape.clone(),
            seconds: self.began.elapsed().as_secs_f64(),
            real_time: state.real_time,
            down: state.down.counts(),
            up: state.up.counts(),
            lateness_us: state.meter.read(),
            refused: state.refused,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.state().ending = true;
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn device(namespace: &Namespace, number: u8, own: Ipv4Addr) -> io::Result<File> {
    namespace.within(|| {
        let name = format!("link{number}");
        let file = kernel::tun(&name)?;
        kernel::configure(&name, own, MTU, WAITING)?;
        // Else the kernel sends solicitations of its own. Absent where there is no IPv6 at all.
        let ipv6 = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        let _ = std::fs::write(ipv6, "1");
        kernel::up(&name)?;
        Ok(file)
    })
}

/// Packets from one device to the other until told to end. `ends` are the first's and the second's.
fn serve(shared: &Shared, ends: &[File; 2], woken: &OwnedFd, began: Instant) {
    // Timers to the nanosecond: the kernel's usual 50 µs would be lateness of ours.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    shared.state().real_time = kernel::real_time();
    let now = || began.elapsed().as_nanos() as u64;
    let mut buffer = vec![0; 65536];
    loop {
        let next_ns = {
            let state = &mut *shared.state();
            if state.ending {
                return;
            }
            take(&mut state.up, &ends[0], &mut buffer, &now);
            take(&mut state.down, &ends[1], &mut buffer, &now);
            give(state, ends, &now);
            let next = [state.up.next_ns(), state.down.next_ns()];
            next.into_iter().flatten().min()
        };
        let timeout = next_ns.map(|due_ns| timespec(due_ns.saturating_sub(now())));
        let [first, second] = ends;
        let mut fds = [
            PollFd::new(first, PollFlags::IN),
            PollFd::new(second, PollFlags::IN),
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
        ];
        // Interrupted or not: the next turn looks at everything.
        let _ = poll(&mut fds, timeout.as_ref());
        let _ = rustix::io::read(woken, &mut [0; 8]);
    }
}

fn take(pipe: &mut Pipe, mut from: &File, buffer: &mut [u8], now: &impl Fn() -> u64) {
    for _ in 0..BATCH {
        match from.read(buffer) {
            Ok(len) => pipe.take(now(), buffer.get(..len).unwrap_or_default()),
            Err(_) => return,
        }
    }
}

fn give(state: &mut State, ends: &[File; 2], now: &impl Fn() -> u64) {
    for (pipe, mut end) in [(&mut state.down, &ends[0]), (&mut state.up, &ends[1])] {
        while let Some((due_ns, packet)) = pipe.arrived(now()) {
            if end.write(&packet).is_err() {
                state.refused += 1;
            }
            state.meter.note(now().saturating_sub(due_ns));
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
