//! A URL becomes an object store.

use super::profile;
use crate::http::{Client, Factory};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// What remote libraries' URLs begin with.
pub(super) const SCHEMES: [&str; 8] = [
    "s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://", "http://", "https://",
];

/// A library's place.
pub(super) struct Address {
    pub(super) store: Arc<dyn ObjectStore>,
    /// What every key is put behind.
    pub(super) prefix: Path,
    /// As records name it.
    pub(super) name: Arc<str>,
    /// Where it can say what it holds; plain HTTP cannot.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
}

/// An object store, and the same as one that lists page by page.
type Opened = (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>);

/// Whether redirects are to be followed there.
pub(super) fn follows(url: &str) -> bool {
    url.starts_with("http")
}

/// Opens a place, without asking it anything.
pub(super) fn open(
    source: &str,
    settings: &[(String, String)],
    client: Client,
) -> Result<Address, String> {
    let url = Url::parse(source).map_err(|error| format!("{}: {error}", shown(source)))?;
    if (!url.username().is_empty() || url.password().is_some()) && url.scheme() != "abfss" {
        return Err(format!(
            "{}: a URL is no place for a name and password; use the storage's own ways",
            shown(source)
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{}: a library's URL has no ? or #", shown(source)));
    }
    let http = matches!(url.scheme(), "http" | "https");
    let name: Arc<str> = match http {
        true => url.origin().ascii_serialization().into(),
        false => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()).into(),
    };
    let wrong = |error: object_store::Error| format!("{name}: {}", plain(&error));
    let (store, pages): Opened = match url.scheme() {
        "http" | "https" => (Arc::new(plain_http(&url, client).map_err(wrong)?), None),
        "gs" => {
            let builder = set(
                GoogleCloudStorageBuilder::from_env(),
                settings,
                |b, key, value| Ok(b.with_config(key.parse()?, value)),
            )?;
            let builder = builder.with_url(source).with_client_options(options());
            let builder = builder
                .with_http_connector(Factory(client))
                .with_retry(once());
            listing(builder.build().map_err(wrong)?)
        }
        "az" | "abfs" | "abfss" => {
            let builder = set(
                MicrosoftAzureBuilder::from_env(),
                settings,
                |b, key, value| Ok(b.with_config(key.parse()?, value)),
            )?;
            let builder = builder.with_url(source).with_client_options(options());
            let builder = builder
                .with_http_connector(Factory(client))
                .with_retry(once());
            listing(builder.build().map_err(wrong)?)
        }
        _ => {
            let builder = set(s3_from_env(), settings, |b, key, value| {
                Ok(b.with_config(key.parse()?, value))
            })?;
            let builder = builder.with_url(source).with_client_options(options());
            let builder = builder
                .with_http_connector(Factory(client))
                .with_retry(once());
            listing(builder.build().map_err(wrong)?)
        }
    };
    let prefix = if http { "" } else { url.path() };
    let prefix = Path::from_url_path(prefix).map_err(|error| format!("{name}: {error}"))?;
    Ok(Address {
        store,
        pages,
        prefix,
        name,
    })
}

fn listing<S: ObjectStore + PaginatedListStore>(store: S) -> Opened {
    let store = Arc::new(store);
    (store.clone(), Some(store))
}

/// Gives a builder its settings by name.
fn set<B>(
    mut builder: B,
    settings: &[(String, String)],
    with: impl Fn(B, &str, &str) -> object_store::Result<B>,
) -> Result<B, String> {
    for (key, value) in settings {
        let set = with(builder, &key.to_ascii_lowercase(), value);
        // Not the value, which may be a secret.
        builder = set.map_err(|_| format!("{key}: the storage has no such setting"))?;
    }
    Ok(builder)
}

/// The shared files first, the environment over them.
fn s3_from_env() -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in profile::read() {
        if let Ok(key) = key.parse() {
            builder = builder.with_config(key, value);
        }
    }
    for (key, value) in std::env::vars() {
        if key.starts_with("AWS_")
            && let Ok(key) = key.to_ascii_lowercase().parse()
        {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

fn plain_http(url: &Url, client: Client) -> object_store::Result<impl ObjectStore> {
    let mut base = url.clone();
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", url.path()));
    }
    HttpBuilder::new()
        .with_url(base)
        .with_http_connector(Factory(client))
        .with_client_options(options())
        .with_retry(once())
        .build()
}

/// Plain HTTP is for the one who wrote the URL or the endpoint to decide.
fn options() -> ClientOptions {
    ClientOptions::new().with_allow_http(true)
}

/// Requests are repeated by us, who count them.
fn once() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 0,
        retry_timeout: Duration::from_secs(60),
    }
}

/// A URL without a name and password in it.
fn shown(source: &str) -> String {
    match (source.split_once("://"), source.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => source.to_owned(),
    }
}

/// What an error of a builder says, which is about settings.
fn plain(error: &object_store::Error) -> String {
    match error {
        object_store::Error::Generic { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
