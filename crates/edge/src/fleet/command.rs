//! The fleet commands, and the parser of their messages.

use http::Uri;
use serde::Deserialize;

use crate::cache_key::unescape_unreserved;
use crate::purge::PurgeTarget;
use crate::warm;

/// The names of the commands.
pub const COMMANDS: [&str; 3] = ["purge", "warm", "reload"];
/// Maximum length of an id, in bytes.
const ID_BYTES_MAX: usize = 128;
/// Edges send results only to subjects with this prefix. Otherwise, a sender could request results
/// on the subject of a command, and all edges would receive the results as commands.
pub const INBOX_PREFIX: &str = "_INBOX.";

/// A command with its id.
#[derive(Debug, PartialEq, Eq)]
pub struct IdentifiedCommand {
    pub id: String,
    pub command: FleetCommand,
}

/// A command that an edge executes.
#[derive(Debug, PartialEq, Eq)]
pub enum FleetCommand {
    /// Removes objects. If `soft` is set, marks the objects for revalidation instead.
    Purge { target: PurgeTarget, soft: bool },
    /// Fetches these URLs into the cache.
    Warm(Vec<Uri>),
    /// Reads the settings again.
    Reload,
}

/// The JSON message of a command. The command's name is not in the message, but is the last part of
/// the NATS subject.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandMessage {
    id: String,
    /// NATS subject to which the edges send their results.
    reply: Option<String>,
    url: Option<String>,
    prefix: Option<String>,
    tag: Option<String>,
    soft: Option<bool>,
    urls: Option<Vec<String>>,
    base: Option<String>,
}

impl CommandMessage {
    /// Parses the JSON.
    ///
    /// # Errors
    /// A message with the position and the cause of the JSON error.
    pub fn parse_message(bytes: &[u8]) -> Result<CommandMessage, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Returns the subject for the results if it has the prefix [`INBOX_PREFIX`].
    pub fn reply_subject(&self) -> Option<&str> {
        let reply = self.reply.as_deref();
        reply.filter(|subject| subject.starts_with(INBOX_PREFIX))
    }

    /// Converts the message to the command `name`.
    ///
    /// # Errors
    /// A message that describes the unknown name, or the missing, invalid or superfluous field.
    pub fn into_command(self, name: &str) -> Result<IdentifiedCommand, String> {
        let id = self.id.clone();
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(format!("id must have 1 to {ID_BYTES_MAX} bytes"));
        }
        let command = match name {
            "purge" => self.into_purge(),
            "warm" => self.into_warm(),
            "reload" => self.into_reload(),
            _ => Err(format!(
                "unknown command; use one of {}",
                COMMANDS.join(", ")
            )),
        }?;
        Ok(IdentifiedCommand { id, command })
    }

    fn into_purge(self) -> Result<FleetCommand, String> {
        if self.urls.is_some() || self.base.is_some() {
            return Err("urls and base belong to warm".into());
        }
        let unescape = |text: String| unescape_unreserved(&text).into_owned();
        let url = self.url.map(unescape).map(PurgeTarget::Url);
        let prefix = self.prefix.map(unescape).map(PurgeTarget::Prefix);
        let tag = self.tag.map(PurgeTarget::Tag);
        let mut targets = [url, prefix, tag].into_iter().flatten();
        let (Some(target), None) = (targets.next(), targets.next()) else {
            return Err("exactly one of url, prefix and tag is required".into());
        };
        let (PurgeTarget::Url(text) | PurgeTarget::Prefix(text) | PurgeTarget::Tag(text)) = &target;
        if text.is_empty() {
            return Err("url, prefix and tag must not be empty".into());
        }
        let soft = self.soft.unwrap_or(false);
        Ok(FleetCommand::Purge { target, soft })
    }

    fn into_warm(self) -> Result<FleetCommand, String> {
        if self.has_purge_fields() {
            return Err("url, prefix, tag and soft belong to purge".into());
        }
        let list = self.urls.ok_or("urls is missing")?.join("\n");
        let base = self.base.unwrap_or_default();
        Ok(FleetCommand::Warm(warm::parse_url_list(&list, &base)?))
    }

    fn into_reload(self) -> Result<FleetCommand, String> {
        if self.has_purge_fields() || self.urls.is_some() || self.base.is_some() {
            return Err("reload has no fields but id and reply".into());
        }
        Ok(FleetCommand::Reload)
    }

    fn has_purge_fields(&self) -> bool {
        let names = [&self.url, &self.prefix, &self.tag];
        names.iter().any(|field| field.is_some()) || self.soft.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, json: &str) -> Result<IdentifiedCommand, String> {
        CommandMessage::parse_message(json.as_bytes())?.into_command(name)
    }

    #[test]
    fn messages_become_commands() {
        let purge = |target, soft| FleetCommand::Purge { target, soft };
        for (name, json, expected) in [
            (
                "purge",
                r#"{"id":"1","url":"/%66ilm"}"#,
                purge(PurgeTarget::Url("/film".into()), false),
            ),
            (
                "purge",
                r#"{"id":"1","prefix":"/f/","soft":true}"#,
                purge(PurgeTarget::Prefix("/f/".into()), true),
            ),
            (
                "purge",
                r#"{"id":"1","tag":"t","reply":"_INBOX.a"}"#,
                purge(PurgeTarget::Tag("t".into()), false),
            ),
            (
                "warm",
                r#"{"id":"1","urls":["1.m4s","/b"],"base":"/a/"}"#,
                FleetCommand::Warm(vec![Uri::from_static("/a/1.m4s"), Uri::from_static("/b")]),
            ),
            ("reload", r#"{"id":"1"}"#, FleetCommand::Reload),
        ] {
            let found = parse(name, json).unwrap();
            assert_eq!((found.id.as_str(), found.command), ("1", expected));
        }
    }

    #[test]
    fn messages_that_cannot_be_parsed_are_refused_with_the_reason() {
        for (name, json, reason) in [
            ("purge", "{", "EOF"),
            ("purge", r#"{"url":"/a"}"#, "id must have"),
            ("purge", r#"{"id":"1"}"#, "exactly one"),
            ("purge", r#"{"id":"1","url":"/a","tag":"t"}"#, "exactly one"),
            ("purge", r#"{"id":"1","prefix":""}"#, "not be empty"),
            ("purge", r#"{"id":"1","all":true}"#, "unknown field `all`"),
            (
                "purge",
                r#"{"id":"1","url":"/a","urls":[]}"#,
                "belong to warm",
            ),
            ("warm", r#"{"id":"1"}"#, "urls is missing"),
            ("warm", r#"{"id":"1","urls":["a"]}"#, "neither a path"),
            ("reload", r#"{"id":"1","url":"/a"}"#, "no fields"),
            ("drop", r#"{"id":"1"}"#, "unknown command"),
        ] {
            let error = parse(name, json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(ID_BYTES_MAX + 1));
        assert!(parse("reload", &long).is_err());
    }

    #[test]
    fn results_are_sent_to_inboxes_only() {
        let reply = |subject: &str| {
            let json = format!(r#"{{"id":"1","reply":"{subject}"}}"#);
            let message = CommandMessage::parse_message(json.as_bytes()).unwrap();
            message.reply_subject().map(str::to_owned)
        };
        assert_eq!(reply("_INBOX.x"), Some("_INBOX.x".into()));
        assert_eq!(reply("headwater.edge.purge"), None);
    }
}
