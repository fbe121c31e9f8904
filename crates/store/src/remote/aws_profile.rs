//! Credentials and settings from AWS's shared files, which `object_store` does not read.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads settings from `~/.aws/credentials` and `~/.aws/config`. Environment variables (`AWS_*`)
/// can select other files and another profile. The keys of the result are the names that
/// `object_store` uses. The result is empty if the files contain no known settings.
pub(super) fn read_aws_profile() -> BTreeMap<&'static str, String> {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let profile = var("AWS_PROFILE").unwrap_or_else(|| "default".into());
    let home = var("HOME").map(|home| PathBuf::from(home).join(".aws"));
    let file = |name: &str, default: &str| {
        let path = var(name).map(PathBuf::from);
        let path = path.or_else(|| Some(home.as_ref()?.join(default)))?;
        std::fs::read_to_string(path).ok()
    };
    let config = file("AWS_CONFIG_FILE", "config").unwrap_or_default();
    let secrets = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
    let mut found = section_settings(&config, &[&format!("profile {profile}"), &profile]);
    found.extend(section_settings(&secrets, &[&profile]));
    found
}

/// Returns the known settings in the sections whose name is one of `names`.
fn section_settings(text: &str, names: &[&str]) -> BTreeMap<&'static str, String> {
    const KEYS: [(&str, &str); 5] = [
        ("aws_access_key_id", "aws_access_key_id"),
        ("aws_secret_access_key", "aws_secret_access_key"),
        ("aws_session_token", "aws_session_token"),
        ("region", "aws_region"),
        ("endpoint_url", "aws_endpoint_url"),
    ];
    let mut inside = false;
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            inside = names.contains(&name.trim());
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && let Some((_, ours)) = KEYS.iter().find(|(theirs, _)| *theirs == key.trim())
        {
            found.insert(*ours, value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_profile_is_read() {
        let text = "[default]\naws_access_key_id = A\n\n[profile film]\nregion=eu-west-1\n\
                    output = json\n# aws_session_token = no\n[other]\nregion = x\n";
        let film = section_settings(text, &["profile film", "film"]);
        assert_eq!(
            film.get("aws_region").map(String::as_str),
            Some("eu-west-1")
        );
        assert_eq!(film.len(), 1);
        assert_eq!(
            section_settings(text, &["default"])["aws_access_key_id"],
            "A"
        );
        assert!(section_settings(text, &["none"]).is_empty());
    }
}
