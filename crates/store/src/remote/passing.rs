//! Ranges that pass through, little faster than they are taken.
//!
//! They are fetched window by window, each as fast as it comes, so that no slow reader keeps a
//! connection; the next one while the one before is taken.

use super::object::RemoteObject;
use crate::ranges::Held;
use crate::{Error, Reason};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The first window, so that its bytes are soon there; each next one is twice as long, where there
/// is room.
const WINDOW_BYTES_MIN: u64 = 256 << 10;
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Pieces of the wanted ranges, in order, each of one of them.
pub(super) struct Passing {
    pieces: VecDeque<Bytes>,
    /// Of the window that the pieces are of.
    held: Option<Held>,
    windows: mpsc::Receiver<Result<Window, Error>>,
}

struct Window {
    pieces: VecDeque<Bytes>,
    held: Held,
}

impl Passing {
    /// Begins to fetch.
    pub(super) fn start(
        object: &Arc<RemoteObject>,
        wanted: &VecDeque<Range<u64>>,
        reason: Reason,
    ) -> Passing {
        let (to, windows) = mpsc::channel(1);
        let runs = runs(wanted, object.core().options.waste_bytes);
        let ours = object.clone();
        object
            .core()
            .spawn(async move { pass(&ours, &runs, reason, &to).await });
        Passing {
            pieces: VecDeque::new(),
            held: None,
            windows,
        }
    }

    /// Waits until there is a piece.
    pub(super) async fn begun(&mut self) -> Result<(), Error> {
        while self.pieces.is_empty() {
            self.held = None;
            let ended = || Err(Error::Broken("the storage's threads have ended".into()));
            let window = self.windows.recv().await.unwrap_or_else(ended)?;
            self.pieces = window.pieces;
            self.held = Some(window.held);
        }
        Ok(())
    }

    /// The next piece; there must be one more.
    pub(super) async fn next(&mut self) -> Result<Bytes, Error> {
        self.begun().await?;
        self.pieces.pop_front().ok_or(Error::Changed)
    }
}

/// Wanted ranges that follow each other so near that what lies between is read along.
fn runs(wanted: &VecDeque<Range<u64>>, waste: u64) -> Vec<Vec<Range<u64>>> {
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

async fn pass(
    object: &Arc<RemoteObject>,
    runs: &[Vec<Range<u64>>],
    reason: Reason,
    to: &mpsc::Sender<Result<Window, Error>>,
) {
    let mut len = WINDOW_BYTES_MIN;
    for run in runs {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let mut at = first.start;
        while at < last.end {
            // Not before the window before was begun to be taken; an error: nobody takes it.
            let Ok(place) = to.reserve().await else {
                return;
            };
            let room = object.core().room().max(WINDOW_BYTES_MIN);
            let window = at..last.end.min(at + len.min(room));
            at = window.end;
            let fetched = fetch(object, window, run, reason).await;
            let failed = fetched.is_err();
            place.send(fetched);
            if failed {
                return;
            }
            len = WINDOW_BYTES_MAX.min(len * 2);
        }
    }
}

/// What is wanted of a window, in pieces.
async fn fetch(
    object: &Arc<RemoteObject>,
    window: Range<u64>,
    run: &[Range<u64>],
    reason: Reason,
) -> Result<Window, Error> {
    let core = object.core();
    let held = core.cache.holding().hold(window.end - window.start);
    let ask = object.ask(window.clone(), reason);
    let (mut at, mut pieces) = (window.start, VecDeque::new());
    let fetched = async {
        let (_, mut whole) = core.whole(ask, reason).await?;
        while let Some(bytes) = whole.next().await? {
            let end = at + bytes.len() as u64;
            let first = run.partition_point(|range| range.end <= at);
            for range in run.iter().skip(first).take_while(|range| range.start < end) {
                // Within the piece's length, which is a usize.
                let (from, until) = (range.start.max(at) - at, range.end.min(end) - at);
                pieces.push_back(bytes.slice(from as usize..until as usize));
            }
            at = end;
        }
        Ok(())
    };
    fetched.await.inspect_err(|error| object.notice(error))?;
    Ok(Window { pieces, held })
}
