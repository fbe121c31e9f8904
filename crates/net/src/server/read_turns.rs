//! Limits the bytes that a connection reads before other connections of the same worker get a turn.

use std::pin::pin;
use std::task::{Context, Poll};

/// Bytes that a connection may read in one turn. They contain up to 1,820 HTTP/2 frames, because
/// the shortest frame has 9 bytes.
const TURN_BYTES: usize = 16 << 10;

/// Lets other connections have a turn after a connection has read [`TURN_BYTES`].
///
/// Otherwise a client that sends frames as fast as the server reads them would block all other
/// clients of the worker. `tokio` limits the number of reads in a turn, but not the number of
/// bytes. A read of many short frames takes much CPU time, because a short frame takes as much CPU
/// time as a long frame.
#[derive(Debug)]
pub(super) struct ReadTurnBudget {
    left: usize,
}

impl ReadTurnBudget {
    pub(super) fn new() -> ReadTurnBudget {
        ReadTurnBudget { left: TURN_BYTES }
    }

    /// Counts bytes that were read.
    pub(super) fn count_read_bytes(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Starts a new turn. Called when the connection has waited for bytes.
    pub(super) fn start_turn(&mut self) {
        self.left = TURN_BYTES;
    }

    /// Returns `Pending` once at the end of each turn. The task continues after all other ready
    /// tasks have run and new events have been received.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Ready(());
        }
        self.start_turn();
        // Polls the future only once, because the first poll already schedules the wake-up of the
        // task.
        pin!(tokio::task::yield_now()).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ_BYTES: usize = 4096;

    #[tokio::test]
    async fn a_connection_that_never_waits_yields_after_each_turn() {
        let (mut turns, mut reads, mut polls) = (ReadTurnBudget::new(), 0, 0);
        std::future::poll_fn(|cx| {
            polls += 1;
            while turns.poll_turn(cx).is_ready() {
                if polls > 3 {
                    return Poll::Ready(());
                }
                turns.count_read_bytes(READ_BYTES);
                reads += 1;
            }
            Poll::Pending
        })
        .await;
        assert_eq!(reads, 3 * TURN_BYTES / READ_BYTES);
    }

    #[tokio::test]
    async fn a_connection_that_waits_starts_a_new_turn() {
        let mut turns = ReadTurnBudget::new();
        for _ in 0..10 {
            turns.count_read_bytes(TURN_BYTES - 1);
            let turn = std::future::poll_fn(|cx| Poll::Ready(turns.poll_turn(cx))).await;
            assert!(turn.is_ready());
            turns.start_turn();
        }
    }
}
