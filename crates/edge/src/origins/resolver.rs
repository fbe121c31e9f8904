//! Resolution of origins in DNS.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::try_join_all;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};

use super::dns_origin::{DnsOrigin, DnsRecordKind};

/// Maximum number of servers of one origin.
pub const MEMBERS_MAX: usize = 128;
/// Time limit for the lookup of all records of one origin. An unresponsive DNS server must not
/// delay the next resolution for long.
const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for one query to a configured DNS server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// A server from the DNS records of an origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResolvedServer {
    /// The name whose hash decides which requests the server gets. For an SRV record, the name is
    /// the record's target and port, which stay the same when the address changes.
    pub name: String,
    pub address: SocketAddr,
    /// Weight from the SRV record. A server from an address record has weight 1.
    pub weight: u16,
}

/// The reason why a resolution found no servers.
#[derive(Debug)]
pub enum ResolutionError {
    /// DNS has no usable record for the name.
    Empty,
    /// The DNS lookup failed or timed out.
    Failed(String),
}

/// A resolver for one refresh of all origins. The next refresh creates a new resolver, which reads
/// `resolv.conf` and `hosts` again.
pub struct OriginDnsResolver(TokioResolver);

impl OriginDnsResolver {
    /// Creates a resolver that queries `servers`. If `servers` is empty, queries the system's DNS
    /// servers.
    ///
    /// # Errors
    /// When the system's DNS configuration is unreadable.
    pub fn new(servers: &[SocketAddr]) -> Result<OriginDnsResolver, ResolutionError> {
        let builder = if servers.is_empty() {
            Resolver::builder_tokio()?
        } else {
            let servers = servers.iter().map(name_server_config).collect();
            let config = ResolverConfig::from_name_servers(servers);
            let mut builder =
                Resolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().timeout = QUERY_TIMEOUT;
            builder
        };
        Ok(OriginDnsResolver(builder.build()?))
    }

    /// Returns between one and [`MEMBERS_MAX`] servers of an origin, sorted by name.
    ///
    /// # Errors
    /// When the origin has no server, or DNS failed.
    pub async fn resolve_origin_servers(
        &self,
        origin: &DnsOrigin,
    ) -> Result<Vec<ResolvedServer>, ResolutionError> {
        let found = tokio::time::timeout(RESOLUTION_TIMEOUT, async {
            match origin.records {
                DnsRecordKind::Addresses { port } => self.resolve_name(&origin.name, port).await,
                DnsRecordKind::Services => self.resolve_services(&origin.name).await,
            }
        });
        let timed_out = |_| ResolutionError::Failed("timeout".into());
        let mut servers = found.await.map_err(timed_out)??;
        servers.sort();
        servers.dedup_by_key(|server| server.address);
        if servers.is_empty() {
            return Err(ResolutionError::Empty);
        }
        if servers.len() > MEMBERS_MAX {
            tracing::warn!(
                name = origin.name,
                found = servers.len(),
                used = MEMBERS_MAX,
                "DNS lists too many origins"
            );
            servers.truncate(MEMBERS_MAX);
        }
        Ok(servers)
    }

    async fn resolve_name(
        &self,
        name: &str,
        port: u16,
    ) -> Result<Vec<ResolvedServer>, ResolutionError> {
        let addresses = self.find_addresses(name).await?;
        let server = |ip| {
            let address = SocketAddr::new(ip, port);
            ResolvedServer {
                name: address.to_string(),
                address,
                weight: 1,
            }
        };
        Ok(addresses.into_iter().map(server).collect())
    }

    async fn resolve_services(&self, name: &str) -> Result<Vec<ResolvedServer>, ResolutionError> {
        let found = self.0.lookup(name, RecordType::SRV).await?;
        let services = select_services(&found);
        let servers = services.into_iter().map(|service| async move {
            let target = service.target.to_ascii();
            let addresses = match self.find_addresses(&target).await {
                Err(ResolutionError::Empty) => Vec::new(),
                found => found?,
            };
            Ok::<_, ResolutionError>(expand_srv_target(service, &target, &addresses))
        });
        Ok(try_join_all(servers).await?.concat())
    }

    /// Returns the IPv4 addresses of a name, or the IPv6 addresses if the name has no IPv4 address.
    /// IPv4 and IPv6 addresses are not mixed, because a server with both would become two members.
    async fn find_addresses(&self, name: &str) -> Result<Vec<IpAddr>, ResolutionError> {
        let found = match self.0.lookup(name, RecordType::A).await {
            Err(error) if error.is_no_records_found() => {
                self.0.lookup(name, RecordType::AAAA).await?
            }
            found => found?,
        };
        let addresses = found.answers().iter();
        Ok(addresses
            .filter_map(|record| record.data.ip_addr())
            .collect())
    }
}

/// Returns the SRV records with the lowest priority value. According to RFC 2782, clients use
/// records with higher values only if no server of the returned records is reachable.
fn select_services(found: &Lookup) -> Vec<&SRV> {
    let services = found
        .answers()
        .iter()
        .filter_map(|record| match &record.data {
            // RFC 2782: if the target is the root (`.`), the service is not available.
            RData::SRV(service) if !service.target.is_root() => Some(service),
            _ => None,
        });
    let services: Vec<&SRV> = services.collect();
    let first = services.iter().map(|service| service.priority).min();
    let services = services.into_iter();
    services
        .filter(|service| Some(service.priority) == first)
        .take(MEMBERS_MAX)
        .collect()
}

/// Returns one server for each address of an SRV target. The name of the first server is the target
/// and port. The names of the other servers also contain a number, so that all names differ.
fn expand_srv_target(service: &SRV, target: &str, addresses: &[IpAddr]) -> Vec<ResolvedServer> {
    let mut addresses = addresses.to_vec();
    addresses.sort();
    let server = |(nth, ip)| ResolvedServer {
        name: match nth {
            0 => format!("{target}:{}", service.port),
            nth => format!("{target}:{}#{nth}", service.port),
        },
        address: SocketAddr::new(ip, service.port),
        weight: service.weight,
    };
    addresses.into_iter().enumerate().map(server).collect()
}

fn name_server_config(address: &SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    let connections = connections.map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

impl fmt::Display for ResolutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolutionError::Empty => f.write_str("no records"),
            ResolutionError::Failed(reason) => f.write_str(reason),
        }
    }
}

impl From<NetError> for ResolutionError {
    fn from(error: NetError) -> ResolutionError {
        match error.is_no_records_found() {
            true => ResolutionError::Empty,
            false => ResolutionError::Failed(error.to_string()),
        }
    }
}
