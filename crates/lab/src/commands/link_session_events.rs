//! Events of a `lab link` session, such as the exit of its command or a signal.

use std::io;
use std::process::{Child, ExitCode, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// An event of a link session.
pub(super) enum SessionEndCause {
    /// The client's command exited.
    Command(io::Result<ExitStatus>),
    /// The server exited.
    Server(io::Result<ExitStatus>),
    /// A signal arrived, or standard input ended.
    StopRequested,
}

/// Waits until the command exits or termination is requested. Returns the exit status of the
/// session.
pub(super) async fn wait_for_session_end(
    inbox: &mut mpsc::UnboundedReceiver<SessionEndCause>,
    with_command: bool,
) -> ExitCode {
    while let Some(event) = inbox.recv().await {
        match event {
            SessionEndCause::Command(Ok(status)) => {
                return ExitCode::from(status.code().map_or(1, |code| code as u8));
            }
            SessionEndCause::Command(Err(_)) => return ExitCode::FAILURE,
            SessionEndCause::Server(end) => {
                let end = end.map_or_else(|error| error.to_string(), |status| status.to_string());
                super::output::print_message(format_args!("the server exited: {end}"));
            }
            SessionEndCause::StopRequested if with_command => return ExitCode::from(130),
            SessionEndCause::StopRequested => return ExitCode::SUCCESS,
        }
    }
    ExitCode::FAILURE
}

/// Turns SIGTERM and Ctrl-C into events.
pub(super) fn forward_signals(events: &mpsc::UnboundedSender<SessionEndCause>) -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut signals, events) = (signal(kind)?, events.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = events.send(SessionEndCause::StopRequested);
            }
        });
    }
    Ok(())
}

/// Turns the exit of a process into an event.
pub(super) fn forward_process_exit(
    mut child: Child,
    events: &mpsc::UnboundedSender<SessionEndCause>,
    as_event: fn(io::Result<ExitStatus>) -> SessionEndCause,
) {
    let events = events.clone();
    std::thread::spawn(move || events.send(as_event(child.wait())));
}

/// Turns the end of standard input into an event.
pub(super) fn forward_stdin_eof(events: &mpsc::UnboundedSender<SessionEndCause>) {
    let events = events.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        events.send(SessionEndCause::StopRequested)
    });
}
