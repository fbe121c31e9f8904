//! What ends a run over a link: its command, a signal, the end of standard input.

use std::io;
use std::process::{Child, ExitCode, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What happened.
pub(super) enum Event {
    /// The client's command ended.
    Command(io::Result<ExitStatus>),
    /// The server ended.
    Server(io::Result<ExitStatus>),
    /// We were told to end.
    Asked,
}

/// Until the command ends; without one, until asked to end.
pub(super) async fn until_end(
    inbox: &mut mpsc::UnboundedReceiver<Event>,
    with_command: bool,
) -> ExitCode {
    while let Some(event) = inbox.recv().await {
        match event {
            Event::Command(Ok(status)) => {
                return ExitCode::from(status.code().map_or(1, |code| code as u8));
            }
            Event::Command(Err(_)) => return ExitCode::FAILURE,
            Event::Server(end) => {
                let end = end.map_or_else(|error| error.to_string(), |status| status.to_string());
                super::tell(format_args!("the server has ended: {end}"));
            }
            Event::Asked if with_command => return ExitCode::from(130),
            Event::Asked => return ExitCode::SUCCESS,
        }
    }
    ExitCode::FAILURE
}

/// SIGTERM and Ctrl-C become events.
pub(super) fn listen(events: &mpsc::UnboundedSender<Event>) -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut signals, events) = (signal(kind)?, events.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = events.send(Event::Asked);
            }
        });
    }
    Ok(())
}

/// The end of a process becomes an event.
pub(super) fn report_end(
    mut child: Child,
    events: &mpsc::UnboundedSender<Event>,
    as_event: fn(io::Result<ExitStatus>) -> Event,
) {
    let events = events.clone();
    std::thread::spawn(move || events.send(as_event(child.wait())));
}

/// So does the end of standard input.
pub(super) fn until_eof(events: &mpsc::UnboundedSender<Event>) {
    let events = events.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        events.send(Event::Asked)
    });
}
