//! Helpers for keys in files, and for the playlists of protected titles.

use super::TestServer;
use std::path::PathBuf;

pub const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

/// A file in a temporary folder.
pub struct TextFile {
    folder: tempfile::TempDir,
}

impl TextFile {
    pub fn new(text: &str) -> TextFile {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), text).unwrap();
        TextFile { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    pub fn keys(&self, kind: &str) -> String {
        format!("{kind}:{}", self.path().display())
    }
}

pub fn serve_with_keys(keys: &str, flags: &[&str]) -> TestServer {
    let own = ["--segment", "2s", "--drm-keys", keys];
    TestServer::new(&[&own, flags].concat())
}

/// Returns the media and I-frame playlists of a title.
pub fn playlists(server: &TestServer, title: &str) -> Vec<String> {
    let text = server.text(&format!("/{title}/.m3u8"));
    let words = text
        .split(['"', '\n'])
        .filter(|word| word.ends_with(".m3u8"));
    let mut found: Vec<_> = words.map(|uri| format!("/{title}/{uri}")).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the URLs of the init segment and the media segments of a media playlist.
pub fn segments(server: &TestServer, playlist: &str) -> Vec<String> {
    let folder = playlist.rsplit_once('/').unwrap().0;
    let text = server.text(playlist);
    let lines = text.lines().filter(|line| line.ends_with(".m4s"));
    let names = std::iter::once("init.mp4").chain(lines);
    names.map(|name| format!("{folder}/{name}")).collect()
}

pub fn contains(bytes: &[u8], name: &[u8; 4]) -> bool {
    bytes.windows(4).any(|four| four == name)
}

pub fn cpix(keys: &[(&str, &str, &str)]) -> String {
    let key = |(kid, value, _): &(&str, &str, &str)| {
        format!(
            "<ContentKey kid=\"{kid}\"><Data><Secret><PlainValue>{value}</PlainValue></Secret></Data></ContentKey>"
        )
    };
    let rule = |(kid, _, filter): &(&str, &str, &str)| {
        format!("<ContentKeyUsageRule kid=\"{kid}\">{filter}</ContentKeyUsageRule>")
    };
    let all =
        |part: &dyn Fn(&(&str, &str, &str)) -> String| keys.iter().map(part).collect::<String>();
    format!(
        "<CPIX version=\"2.3\" xmlns=\"urn:dashif:org:cpix\"><ContentKeyList>{}</ContentKeyList><ContentKeyUsageRuleList>{}</ContentKeyUsageRuleList></CPIX>",
        all(&key),
        all(&rule)
    )
}

pub const LOW: &str = "00000000-0000-0000-0000-0000000000a1";
pub const HIGH: &str = "00000000-0000-0000-0000-0000000000a2";
pub const AUDIO: &str = "00000000-0000-0000-0000-0000000000a3";
pub const VALUE: &str = "AAECAwQFBgcICQoLDA0ODw==";

pub fn three_keys() -> String {
    cpix(&[
        (LOW, VALUE, "<VideoFilter maxPixels=\"100000\"/>"),
        (HIGH, VALUE, "<VideoFilter minPixels=\"100001\"/>"),
        (AUDIO, VALUE, "<AudioFilter/>"),
    ])
}
