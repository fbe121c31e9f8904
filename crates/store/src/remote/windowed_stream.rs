//! Streams long ranges with bounded memory.
//!
//! The ranges are fetched in windows. The next window is fetched while the current window is read.
//! Each window is received at full speed, so that a slow reader does not occupy a connection.

use super::object::RemoteObject;
use crate::range_cache::MemoryLease;
use crate::{Error, RequestReason};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Length of the first window in bytes. The first window is short, so that its bytes arrive soon.
/// Each further window is twice as long as the previous window, if memory allows.
const WINDOW_BYTES_MIN: u64 = 256 << 10;
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Bytes of the wanted ranges, in order. Each part that is returned belongs to one range only.
pub(super) struct WindowedStream {
    pieces: VecDeque<Bytes>,
    /// The memory that is reserved for the current window.
    held: Option<MemoryLease>,
    windows: mpsc::Receiver<Result<StreamWindow, Error>>,
}

struct StreamWindow {
    pieces: VecDeque<Bytes>,
    held: MemoryLease,
}

impl WindowedStream {
    /// Starts to fetch the first window.
    pub(super) fn start_first_window(
        object: &Arc<RemoteObject>,
        wanted: &VecDeque<Range<u64>>,
        reason: RequestReason,
    ) -> WindowedStream {
        let (sender, windows) = mpsc::channel(1);
        let runs = group_close_ranges(wanted, object.core().options.waste_bytes);
        let shared_object = object.clone();
        object.core().spawn_fetch(async move {
            fetch_all_windows(&shared_object, &runs, reason, &sender).await
        });
        WindowedStream {
            pieces: VecDeque::new(),
            held: None,
            windows,
        }
    }

    /// Waits until bytes are available.
    pub(super) async fn wait_for_data(&mut self) -> Result<(), Error> {
        while self.pieces.is_empty() {
            self.held = None;
            let ended = || Err(Error::Broken("the storage threads have exited".into()));
            let window = self.windows.recv().await.unwrap_or_else(ended)?;
            self.pieces = window.pieces;
            self.held = Some(window.held);
        }
        Ok(())
    }

    /// Returns the next bytes. Must not be called again after the last bytes.
    pub(super) async fn next_bytes(&mut self) -> Result<Bytes, Error> {
        self.wait_for_data().await?;
        self.pieces.pop_front().ok_or(Error::Changed)
    }
}

/// Groups the wanted ranges. Within a group, gaps between ranges are at most `waste` bytes long.
/// The ranges of a group are fetched together with these gaps.
fn group_close_ranges(wanted: &VecDeque<Range<u64>>, waste: u64) -> Vec<Vec<Range<u64>>> {
    let mut runs: Vec<Vec<Range<u64>>> = Vec::new();
    for range in wanted {
        match runs.last_mut() {
            Some(run)
                if run.last().is_some_and(|last| {
                    range.start >= last.end && range.start - last.end <= waste
                }) =>
            {
                run.push(range.clone());
            }
            _ => runs.push(vec![range.clone()]),
        }
    }
    runs
}

async fn fetch_all_windows(
    object: &Arc<RemoteObject>,
    runs: &[Vec<Range<u64>>],
    reason: RequestReason,
    sender: &mpsc::Sender<Result<StreamWindow, Error>>,
) {
    let mut len = WINDOW_BYTES_MIN;
    for run in runs {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let mut at = first.start;
        while at < last.end {
            // Waits until the reader has taken the previous window. An error means that the reader
            // was dropped.
            let Ok(slot) = sender.reserve().await else {
                return;
            };
            let room = object.core().unreserved_bytes().max(WINDOW_BYTES_MIN);
            let window = at..last.end.min(at + len.min(room));
            at = window.end;
            let fetched = fetch_window(object, window, run, reason).await;
            let failed = fetched.is_err();
            slot.send(fetched);
            if failed {
                return;
            }
            len = WINDOW_BYTES_MAX.min(len * 2);
        }
    }
}

/// Fetches a window and returns the wanted bytes in it.
async fn fetch_window(
    object: &Arc<RemoteObject>,
    window: Range<u64>,
    run: &[Range<u64>],
    reason: RequestReason,
) -> Result<StreamWindow, Error> {
    let core = object.core();
    let held = core
        .cache
        .reserved_memory()
        .count_reserved(window.end - window.start);
    let request = object.range_request(window.clone(), reason);
    let (mut at, mut pieces) = (window.start, VecDeque::new());
    let fetched = async {
        let (_, mut stream) = core.open_stream(request, reason).await?;
        while let Some(bytes) = stream.next_bytes().await? {
            let end = at + bytes.len() as u64;
            let first = run.partition_point(|range| range.end <= at);
            for range in run.iter().skip(first).take_while(|range| range.start < end) {
                // The offsets are within `bytes`, so they fit in a usize.
                let (from, until) = (range.start.max(at) - at, range.end.min(end) - at);
                pieces.push_back(bytes.slice(from as usize..until as usize));
            }
            at = end;
        }
        Ok(())
    };
    fetched
        .await
        .inspect_err(|error| object.mark_if_changed(error))?;
    Ok(StreamWindow { pieces, held })
}
