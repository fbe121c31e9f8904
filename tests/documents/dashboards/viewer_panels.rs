//! The dashboard about viewers. It shows the CMCD collector's metrics by network and by title
//! class.

use super::panels::{Dashboard, panel};

pub const VIEWERS: Dashboard = Dashboard {
    name: "viewers",
    title: "Headwater: viewers",
    numbers: &[],
    panels: &[
        panel(
            "Sessions by network",
            "short",
            &[(
                r#"sum by (network) (headwater_sessions{job=~"$job"})"#,
                "{{network}}",
            )],
        ),
        panel(
            "Stalls per viewer and hour by network",
            "short",
            &[(
                r#"3600 * sum by (network) (rate(headwater_cmcd_rebuffers_total{job=~"$job"}[$__rate_interval])) / sum by (network) (headwater_sessions{job=~"$job"})"#,
                "{{network}}",
            )],
        ),
        panel(
            "Start-up time by network, p50 and p95",
            "s",
            &[
                (
                    r#"histogram_quantile(0.5, sum by (network, le) (rate(headwater_cmcd_startup_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p50",
                ),
                (
                    r#"histogram_quantile(0.95, sum by (network, le) (rate(headwater_cmcd_startup_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p95",
                ),
            ],
        ),
        panel(
            "Bitrate of video by network, p10 and p50",
            "Kbits",
            &[
                (
                    r#"histogram_quantile(0.1, sum by (network, le) (rate(headwater_cmcd_bitrate_kbps_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p10",
                ),
                (
                    r#"histogram_quantile(0.5, sum by (network, le) (rate(headwater_cmcd_bitrate_kbps_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p50",
                ),
            ],
        ),
        panel(
            "Buffer by network, p10 and p50",
            "s",
            &[
                (
                    r#"histogram_quantile(0.1, sum by (network, le) (rate(headwater_cmcd_buffer_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p10",
                ),
                (
                    r#"histogram_quantile(0.5, sum by (network, le) (rate(headwater_cmcd_buffer_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{network}} p50",
                ),
            ],
        ),
        panel(
            "Errors of players by network",
            "cps",
            &[(
                r#"sum by (network) (rate(headwater_cmcd_errors_total{job=~"$job"}[$__rate_interval]))"#,
                "{{network}}",
            )],
        ),
        panel(
            "Sessions by title class",
            "short",
            &[(
                r#"sum by (title_class) (headwater_sessions{job=~"$job"})"#,
                "{{title_class}}",
            )],
        ),
        panel(
            "Stalls per viewer and hour by title class",
            "short",
            &[(
                r#"3600 * sum by (title_class) (rate(headwater_cmcd_rebuffers_total{job=~"$job"}[$__rate_interval])) / sum by (title_class) (headwater_sessions{job=~"$job"})"#,
                "{{title_class}}",
            )],
        ),
        panel(
            "Start-up time by title class, p50 and p95",
            "s",
            &[
                (
                    r#"histogram_quantile(0.5, sum by (title_class, le) (rate(headwater_cmcd_startup_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p50",
                ),
                (
                    r#"histogram_quantile(0.95, sum by (title_class, le) (rate(headwater_cmcd_startup_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p95",
                ),
            ],
        ),
        panel(
            "Bitrate of video by title class, p10 and p50",
            "Kbits",
            &[
                (
                    r#"histogram_quantile(0.1, sum by (title_class, le) (rate(headwater_cmcd_bitrate_kbps_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p10",
                ),
                (
                    r#"histogram_quantile(0.5, sum by (title_class, le) (rate(headwater_cmcd_bitrate_kbps_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p50",
                ),
            ],
        ),
        panel(
            "Buffer by title class, p10 and p50",
            "s",
            &[
                (
                    r#"histogram_quantile(0.1, sum by (title_class, le) (rate(headwater_cmcd_buffer_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p10",
                ),
                (
                    r#"histogram_quantile(0.5, sum by (title_class, le) (rate(headwater_cmcd_buffer_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{title_class}} p50",
                ),
            ],
        ),
        panel(
            "Errors of players by title class",
            "cps",
            &[(
                r#"sum by (title_class) (rate(headwater_cmcd_errors_total{job=~"$job"}[$__rate_interval]))"#,
                "{{title_class}}",
            )],
        ),
        panel(
            "Reports by event",
            "cps",
            &[(
                r#"sum by (event) (rate(headwater_cmcd_reports_total{job=~"$job"}[$__rate_interval]))"#,
                "{{event}}",
            )],
        ),
        panel(
            "Reports and sessions lost",
            "cps",
            &[
                (
                    r#"sum by (instance) (rate(headwater_cmcd_malformed_total{job=~"$job"}[$__rate_interval]))"#,
                    "{{instance}} malformed",
                ),
                (
                    r#"sum by (instance) (rate(headwater_sessions_evicted_total{job=~"$job"}[$__rate_interval]))"#,
                    "{{instance}} evicted",
                ),
            ],
        ),
        panel(
            "Round-trip time of responses, p50 and p95",
            "s",
            &[
                (
                    r#"histogram_quantile(0.5, sum by (algorithm, le) (rate(headwater_tcp_rtt_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{algorithm}} p50",
                ),
                (
                    r#"histogram_quantile(0.95, sum by (algorithm, le) (rate(headwater_tcp_rtt_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{algorithm}} p95",
                ),
            ],
        ),
    ],
};
