//! Creates object stores from URLs.

use super::aws_profile;
use crate::http::{StorageHttpClient, StorageHttpConnector};
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

/// URL schemes of remote libraries.
pub(super) const SCHEMES: [&str; 8] = [
    "s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://", "http://", "https://",
];

/// An opened storage, and the location of the library in it.
pub(super) struct LibraryStorage {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The prefix of all keys.
    pub(super) prefix: Path,
    /// The name of the storage in logs and records.
    pub(super) name: Arc<str>,
    /// The interface for listing. Storages with an `http` or `https` URL have no such interface.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
}

/// An object store, and its interface for listing pages.
type StoreWithListing = (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>);

/// Returns whether redirects of this storage are followed.
pub(super) fn follows_redirects(url: &str) -> bool {
    url.starts_with("http")
}

/// Creates a storage client without sending a request.
pub(super) fn open_storage(
    source: &str,
    settings: &[(String, String)],
    client: StorageHttpClient,
) -> Result<LibraryStorage, String> {
    let url = parse_library_url(source)?;
    let http = matches!(url.scheme(), "http" | "https");
    let name: Arc<str> = match http {
        true => url.origin().ascii_serialization().into(),
        false => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()).into(),
    };
    let wrong = |error: object_store::Error| format!("{name}: {}", builder_error_text(&error));
    // The builders have the same methods but no common trait.
    macro_rules! build {
        ($builder:expr) => {{
            let builder = apply_settings($builder, settings, |b, key, value| {
                Ok(b.with_config(key.parse()?, value))
            })?;
            let builder = builder
                .with_url(source)
                .with_client_options(client_options())
                .with_http_connector(StorageHttpConnector(client))
                .with_retry(without_retries());
            pair_with_listing(builder.build().map_err(wrong)?)
        }};
    }
    let (store, pages): StoreWithListing = match url.scheme() {
        "http" | "https" => (
            Arc::new(build_http_store(&url, client).map_err(wrong)?),
            None,
        ),
        "gs" => build!(GoogleCloudStorageBuilder::from_env()),
        "az" | "abfs" | "abfss" => build!(MicrosoftAzureBuilder::from_env()),
        _ => build!(s3_from_env()),
    };
    let prefix = if http { "" } else { url.path() };
    let prefix = Path::from_url_path(prefix).map_err(|error| format!("{name}: {error}"))?;
    Ok(LibraryStorage {
        store,
        pages,
        prefix,
        name,
    })
}

/// Parses a library's URL, which must not contain credentials, a query or a fragment.
fn parse_library_url(source: &str) -> Result<Url, String> {
    let url = Url::parse(source)
        .map_err(|error| format!("{}: not a URL: {error}", hide_credentials(source)))?;
    if (!url.username().is_empty() || url.password().is_some()) && url.scheme() != "abfss" {
        return Err(format!(
            "{}: names and passwords in URLs are not supported; use the storage's credentials",
            hide_credentials(source)
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        let source = hide_credentials(source);
        return Err(format!(
            "{source}: the bucket is missing; write {source}BUCKET/PREFIX"
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!(
            "{}: the URL of a library must not contain ? or #",
            hide_credentials(source)
        ));
    }
    Ok(url)
}

fn pair_with_listing<S: ObjectStore + PaginatedListStore>(store: S) -> StoreWithListing {
    let store = Arc::new(store);
    (store.clone(), Some(store))
}

/// Applies settings to a builder by name.
fn apply_settings<B>(
    mut builder: B,
    settings: &[(String, String)],
    with: impl Fn(B, &str, &str) -> object_store::Result<B>,
) -> Result<B, String> {
    for (key, value) in settings {
        let set = with(builder, &key.to_ascii_lowercase(), value);
        // The message omits the value, which may be a secret.
        builder = set.map_err(|_| format!("{key}: the storage has no such setting"))?;
    }
    Ok(builder)
}

/// Returns a builder with the settings of AWS's shared files. Environment variables override these
/// settings.
fn s3_from_env() -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in aws_profile::read_aws_profile() {
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

fn build_http_store(
    url: &Url,
    client: StorageHttpClient,
) -> object_store::Result<impl ObjectStore> {
    // Removes slashes at the end, because the client would otherwise add a second slash before each
    // name (`/films//film.mp4`).
    let mut base = url.clone();
    base.set_path(url.path().trim_end_matches('/'));
    HttpBuilder::new()
        .with_url(base)
        .with_http_connector(StorageHttpConnector(client))
        .with_client_options(client_options())
        .with_retry(without_retries())
        .build()
}

/// Allows unencrypted HTTP, because the operator has chosen it in the URL.
fn client_options() -> ClientOptions {
    ClientOptions::new().with_allow_http(true)
}

/// Disables retries of `object_store`, because the module `retry` repeats and counts requests.
fn without_retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 0,
        retry_timeout: Duration::from_secs(60),
    }
}

/// Removes the user name, the password, the query and the fragment from a URL. A query may contain a
/// signature that grants access.
fn hide_credentials(source: &str) -> String {
    let query = source.find(['?', '#']).unwrap_or(source.len());
    let (source, query) = source.split_at(query);
    let Some((scheme, rest)) = source.split_once("://") else {
        return source.to_owned();
    };
    // A `?` before the `@` may be part of a password that is not percent-encoded.
    if query.contains('@') {
        return format!("{scheme}://");
    }
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    format!("{scheme}://{rest}")
}

/// Returns the text of a builder's error. Such errors are about settings.
fn builder_error_text(error: &object_store::Error) -> String {
    match error {
        object_store::Error::Generic { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_contain_no_secret_of_a_url() {
        for (url, shown) in [
            ("https://host/films?sig=SECRET", "https://host/films: "),
            ("https://host/films?sig=SECRET@x", "https://: "),
            ("https://host/films#SECRET", "https://host/films: "),
            ("https://user:SECRET@host/films", "https://host/films: "),
            (
                "https://user:SECRET@host/films?sig=SECRET",
                "https://host/films: ",
            ),
            ("https://user:SECRET?SECRET@host/films", "https://: "),
            (
                "https://host:port/films?sig=SECRET",
                "https://host:port/films: ",
            ),
            ("s3://?sig=SECRET", "s3://: "),
        ] {
            let error = parse_library_url(url).unwrap_err();
            assert!(error.starts_with(shown), "{url}: {error}");
            assert!(!error.contains("SECRET"), "{url}: {error}");
        }
    }
}
