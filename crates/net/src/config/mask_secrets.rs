//! Masks secrets in settings before the settings are logged.

/// Masks the secrets of the URLs in a text. A password is masked, as in `nats://lab:***@host`. A
/// user name without a password is also masked, as in `***@host`, because the name may be a token.
pub fn mask_secrets(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(['/', '?', '#', ',', ' ']).unwrap_or(after.len());
        let (authority, others) = after.split_at(end);
        out = out + before + "://";
        out += &match authority.rsplit_once('@') {
            None => authority.to_owned(),
            Some((user, host)) => match user.split_once(':') {
                Some((name, _)) => format!("{name}:***@{host}"),
                None => format!("***@{host}"),
            },
        };
        rest = others;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_urls_are_masked() {
        for (text, expected) in [
            ("nats://lab:s3cr@t@h:4222", "nats://lab:***@h:4222"),
            (
                "tls://a:b@h,tls://token@[::1]:1",
                "tls://a:***@h,tls://***@[::1]:1",
            ),
            (
                "http://h/film@2x.mp4?a=b:c@d",
                "http://h/film@2x.mp4?a=b:c@d",
            ),
            ("route s3://k:v@b/x y@z", "route s3://k:***@b/x y@z"),
            ("10ms", "10ms"),
        ] {
            assert_eq!(mask_secrets(text), expected);
        }
    }
}
