//! Tests the dashboards and alert rules with a real Prometheus that scrapes servers under load.

mod alerts;
mod dashboards;
mod faults;
pub mod scraper;
