//! Dashboards and alert rules with a real Prometheus that scrapes loaded servers.

mod alerts;
mod dashboards;
mod faults;
mod scraper;
