//! Groups the sessions by title, pathway and network. Also groups them by network name and by title
//! class, which are labels of the metrics.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use super::session_table::ViewerSessionTable;
use super::session_view::SessionView;

/// Maximum number of sessions that a summary describes. Sessions with older reports are left out.
const SUMMARIZED_MAX: usize = 5000;
/// Maximum number of connections whose TCP statistics are read.
const SAMPLED_MAX: usize = 1000;
/// Maximum number of groups in one list, such as the list of titles.
const GROUPS_MAX: usize = 50;
/// Maximum number of listed sessions.
const LISTED_MAX: usize = 100;

/// A summary of the sessions, which is the content of `/viewers.json`.
#[derive(Debug, Serialize)]
pub(super) struct ViewersSummary {
    /// Number of sessions in the table.
    pub sessions: usize,
    /// Number of summarized sessions that have neither ended, nor failed, nor been stopped.
    pub viewers: usize,
    pub by_state: BTreeMap<&'static str, usize>,
    pub total: ViewerGroup,
    pub title_classes: Vec<ViewerGroup>,
    pub titles: Vec<ViewerGroup>,
    pub pathways: Vec<ViewerGroup>,
    pub network_names: Vec<ViewerGroup>,
    /// One group for each network prefix of client addresses.
    pub networks: Vec<ViewerGroup>,
    /// The sessions with the latest reports.
    pub latest: Vec<SessionView>,
}

/// Sessions that have the same value of a property, such as the title.
#[derive(Debug, Default, Serialize)]
pub(super) struct ViewerGroup {
    /// The value of the property; `None` if the players do not report the property.
    pub name: Option<String>,
    pub viewers: usize,
    pub stalls: u64,
    pub stalled_ms: u64,
    pub errors: u64,
    /// This value and all values below are medians over the sessions that have the value.
    pub start_up_ms: Option<f64>,
    pub bitrate_kbps: Option<f64>,
    pub buffer_ms: Option<f64>,
    pub rtt_us: Option<f64>,
    pub delivery_bytes_per_s: Option<f64>,
    pub retransmitted: Option<f64>,
}

/// Summarizes the sessions of a table.
pub(super) fn summarize_sessions(table: &ViewerSessionTable, now: Instant) -> ViewersSummary {
    let mut views = Vec::new();
    let mut sessions = 0;
    table.for_each_session(now, |id, session, class| {
        sessions += 1;
        if views.len() < SUMMARIZED_MAX {
            let class = table.classes().network_and_title_names(class);
            views.push(SessionView::new(id, session, class, now));
        }
    });
    views
        .iter_mut()
        .take(SAMPLED_MAX)
        .for_each(SessionView::read_tcp);
    let all: Vec<&SessionView> = views.iter().collect();
    let mut by_state = BTreeMap::new();
    for view in &views {
        *by_state.entry(view.state).or_default() += 1;
    }
    ViewersSummary {
        sessions,
        viewers: views.iter().filter(|view| view.is_watching).count(),
        by_state,
        total: summarize_group(None, &all),
        title_classes: group_sessions(&views, |view| Some(&view.title_class)),
        titles: group_sessions(&views, |view| view.title.as_deref()),
        pathways: group_sessions(&views, |view| view.pathway.as_deref()),
        network_names: group_sessions(&views, |view| Some(&view.network_name)),
        networks: group_sessions(&views, |view| Some(&view.network)),
        latest: {
            views.truncate(LISTED_MAX);
            views
        },
    }
}

/// Groups sessions by name. Returns the groups with the most sessions, the largest group first.
fn group_sessions<'a>(
    views: &'a [SessionView],
    name: impl Fn(&'a SessionView) -> Option<&'a str>,
) -> Vec<ViewerGroup> {
    let mut by_name = BTreeMap::<Option<&str>, Vec<&SessionView>>::new();
    for view in views {
        by_name.entry(name(view)).or_default().push(view);
    }
    let mut groups: Vec<_> = by_name.into_iter().collect();
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    let largest = groups.into_iter().take(GROUPS_MAX);
    largest
        .map(|(name, members)| summarize_group(name, &members))
        .collect()
}

fn summarize_group(name: Option<&str>, members: &[&SessionView]) -> ViewerGroup {
    let tcp = |read: fn(&super::session_view::TcpView) -> Option<f64>| {
        median(members.iter().filter_map(|view| read(view.tcp.as_ref()?)))
    };
    ViewerGroup {
        name: name.map(str::to_owned),
        viewers: members.iter().filter(|view| view.is_watching).count(),
        stalls: members.iter().map(|view| view.stalls).sum(),
        stalled_ms: members.iter().map(|view| view.stalled_ms).sum(),
        errors: members.iter().map(|view| view.errors).sum(),
        start_up_ms: median(members.iter().filter_map(|view| view.start_up_ms)),
        bitrate_kbps: median(members.iter().filter_map(|view| view.bitrate_kbps)),
        buffer_ms: median(members.iter().filter_map(|view| view.buffer_ms)),
        rtt_us: tcp(|tcp| tcp.rtt_us.map(f64::from)),
        delivery_bytes_per_s: tcp(|tcp| tcp.delivery_bytes_per_s.map(|rate| rate as f64)),
        retransmitted: tcp(|tcp| tcp.retransmitted),
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
