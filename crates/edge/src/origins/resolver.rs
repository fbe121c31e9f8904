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

/// Limit on the servers of one origin.
pub const MEMBERS_MAX: usize = 128;
/// Time for all records of one origin. A dead DNS server must not delay the next attempt for long.
const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for one query to a configured DNS server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that DNS lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResolvedServer {
    /// The name that is hashed to distribute the requests. For an SRV record, it is the target with
    /// the port, which stays the same when the address changes.
    pub name: String,
    pub address: SocketAddr,
    /// Weight of an SRV record; 1 for addresses.
    pub weight: u16,
}

/// The reason why a resolution found no servers.
#[derive(Debug)]
pub enum ResolutionError {
    /// DNS contains no such record.
    Empty,
    /// DNS is unavailable or failed.
    Failed(String),
}

/// A resolver for one round of resolutions. The next round reads `resolv.conf` and `hosts` again.
pub struct OriginResolver(TokioResolver);

impl OriginResolver {
    /// Creates a resolver that queries `servers`, or those of the system if there are none.
    ///
    /// # Errors
    /// When the system's configuration is unreadable.
    pub fn new(servers: &[SocketAddr]) -> Result<OriginResolver, ResolutionError> {
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
        Ok(OriginResolver(builder.build()?))
    }

    /// Returns the servers of an origin: at least one, at most [`MEMBERS_MAX`], sorted.
    ///
    /// # Errors
    /// When there is none, or DNS failed.
    pub async fn resolve_origin(
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
            Ok::<_, ResolutionError>(name_servers(service, &target, &addresses))
        });
        Ok(try_join_all(servers).await?.concat())
    }

    /// Returns the IPv4 addresses of a name, or its IPv6 addresses if it has no others. A server
    /// with both would otherwise be two members.
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

/// Returns the services with the lowest priority value. Clients use the other services only if they
/// can reach none of these (RFC 2782).
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

/// Returns a server for each address of a target. Its name is the target and the port; from the
/// second address on, a number is appended.
fn name_servers(service: &SRV, target: &str, addresses: &[IpAddr]) -> Vec<ResolvedServer> {
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
