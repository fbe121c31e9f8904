//! Dashboards and alert rules with a real Prometheus that scrapes loaded servers.

mod alerts;
mod dashboards;
mod faults;
pub mod scraper;
