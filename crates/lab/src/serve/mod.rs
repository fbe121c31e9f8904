//! The Workflow Manager of NBMP over HTTP: workflows and tasks are posted, run one after the other
//! as `lab run` would, looked at, changed and taken away.
//!
//! A request's journey: [`answer`](answer::answer) lets nobody in but whom `door.rs` knows, and says
//! what it is about; `change.rs` hands bodies to `prepare.rs`, which makes runs of them or says with
//! JSONPaths why not; `book.rs` keeps them and their states; `runner.rs` is the one thread that
//! runs; `report.rs` tells others while it does; `describe.rs` says how it stands, `discover.rs`
//! what functions there are.
//!
//! It runs command lines for whoever may post. So it listens on loopback, or asks for a token; it
//! answers to no name but its own, and to no page from elsewhere.

mod answer;
mod book;
mod change;
mod describe;
mod discover;
mod door;
mod prepare;
mod report;
mod runner;

use crate::config::serve::Settings;
use answer::Manager;
use book::Book;
use net::program::MAIN;
use net::{Failed, Limits, Listen, Running, Server, Shutdown};
use std::sync::Arc;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 256;

/// Serves from now on on threads of its own, until `shutdown` drains; what runs is ended then.
///
/// # Errors
/// [`Failed`] when an address or a thread cannot be had.
pub(crate) fn start(settings: Settings, shutdown: Shutdown) -> Result<Running, Failed> {
    let listen = Listen {
        addresses: settings.listen.clone(),
        workers: 1,
        limits: Limits {
            connections_max: CONNECTIONS_MAX,
            ..Limits::default()
        },
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(Failed::cannot(settings.listen.join(", ")))?;
    door::loopback_or_token(&settings, server.addresses())?;
    let book = Arc::new(Book::new(settings.workflows_max));
    let manager = Arc::new(Manager { settings, book });
    let mut running = Running::new(shutdown);
    let works = manager.clone();
    running.work("runner", move || {
        runner::work(&works);
        Ok(())
    })?;
    let told = manager.clone();
    running.until_drained("end", {
        let shutdown = running.shutdown().clone();
        move || async move {
            shutdown.draining().await;
            told.book.end();
        }
    })?;
    running.serve(MAIN, server, move |_| {
        let manager = manager.clone();
        move |request, _| answer::answer(manager.clone(), request)
    })?;
    Ok(running)
}
