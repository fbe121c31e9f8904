//! `[[rule]]` and `[networks]` of the settings file. What is wrong is said with its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cel::Program;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use net::Cidr;
use net::config::{Wrong, bytes, duration};
use serde::Deserialize;
use toml::Spanned;

use super::context::{EARLY, LATE};
use super::networks::Networks;
use super::{Early, Pace, Rule, Rules};

/// Keys of the settings file that are read here.
pub const TABLES: &[&str] = &["rule", "networks", "pool"];

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    rule: Vec<Written>,
    #[serde(default)]
    networks: BTreeMap<String, Vec<Spanned<String>>>,
    /// Here only their names count.
    #[serde(default)]
    pool: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: Option<String>,
    when: Spanned<String>,
    congestion: Option<Spanned<String>>,
    pace: Option<Spanned<PaceWritten>>,
    notsent_lowat: Option<Spanned<String>>,
    initial_window: Option<Spanned<u32>>,
    pool: Option<Spanned<String>>,
    ttl: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    #[serde(default)]
    pass: bool,
    deny: Option<Spanned<u16>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    remove: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PaceWritten {
    Whole(i64),
    Number(f64),
    Expression(String),
}

/// A rule's delay holds a request, and with it memory.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// More would be no window, but a burst.
const INITIAL_WINDOW_MAX: u32 = 1000;

/// Reads the rules of a settings file.
///
/// # Errors
/// The first thing that is wrong, with file, line, and a mark below the place.
pub fn read(path: &str, text: &str) -> Result<Rules, Wrong> {
    let file: File = toml::from_str(text).map_err(|error| Wrong(format!("{path}: {error}")))?;
    let place = Place { path, text };
    let pools: Vec<&str> = file.pool.keys().map(String::as_str).collect();
    let mut networks = Networks::default();
    for (name, list) in &file.networks {
        for network in list {
            let cidr = Cidr::parse(network.get_ref());
            networks.add(name, cidr.map_err(|why| place.wrong(network, 0, &why))?);
        }
    }
    let rules = file.rule.into_iter().enumerate();
    let rules = rules.map(|(n, written)| rule(n + 1, written, &pools, &place));
    Ok(Rules {
        rules: rules.collect::<Result<_, _>>()?,
        networks,
    })
}

struct Place<'a> {
    path: &'a str,
    text: &'a str,
}

impl Place<'_> {
    /// The line that holds a value, and a mark `column` characters into it.
    fn wrong<T>(&self, value: &Spanned<T>, column: usize, why: &str) -> Wrong {
        let start = value.span().start;
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(line_start..).unwrap_or_default();
        let line = line.lines().next().unwrap_or_default();
        let indent = before.get(line_start..).unwrap_or_default().chars().count();
        Wrong(format!(
            "{}:{}: {why}\n  {line}\n  {}^",
            self.path,
            before.matches('\n').count() + 1,
            " ".repeat(indent + column)
        ))
    }

    fn with<T>(
        &self,
        value: Option<&Spanned<String>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Wrong> {
        let parse = |value: &Spanned<String>| {
            parse(value.get_ref()).map_err(|why| self.wrong(value, 0, &why))
        };
        value.map(parse).transpose()
    }

    /// Compiles an expression, and sees to it that it names only what there is.
    fn expression<T>(&self, value: &Spanned<T>, source: &str) -> Result<Program, Wrong> {
        let program = Program::compile(source).map_err(|errors| {
            let first = errors.errors.first();
            let column = first.map_or(0, |error| usize::try_from(error.pos.1).unwrap_or(0));
            let why = first.map_or("no expression", |error| error.msg.as_str());
            // One for the quotation mark before it.
            self.wrong(value, column, why)
        })?;
        for name in program.references().variables() {
            if !EARLY.contains(&name) && !LATE.contains(&name) {
                let column = source.find(name).map_or(0, |at| at + 1);
                let known = EARLY.iter().chain(&LATE).copied().collect::<Vec<_>>();
                let why = format!("there is no {name}; there are {}", known.join(", "));
                return Err(self.wrong(value, column, &why));
            }
        }
        Ok(program)
    }
}

fn rule(number: usize, written: Written, pools: &[&str], place: &Place<'_>) -> Result<Rule, Wrong> {
    let when = place.expression(&written.when, written.when.get_ref())?;
    let late = names(&when, &LATE);
    let early = Early {
        pass: written.pass,
        deny: written
            .deny
            .as_ref()
            .map(|status| deny(status, place))
            .transpose()?,
        delay: place.with(written.delay.as_ref(), delay)?,
        ttl: place.with(written.ttl.as_ref(), duration)?,
        pool: place.with(written.pool.as_ref(), |name| pool(name, pools))?,
    };
    if late && early != Early::default() {
        let why = "pass, deny, delay, ttl and pool are decided before the answer is known; \
                   this condition asks about the answer or the connection";
        return Err(place.wrong(&written.when, 0, why));
    }
    let pace = written
        .pace
        .as_ref()
        .map(|pace| self::pace(pace, place))
        .transpose()?;
    let set = written.set.iter().map(|(name, value)| {
        let wrong = |_| {
            place.wrong(
                value,
                0,
                &format!("{name} cannot be a header with this value"),
            )
        };
        let name: HeaderName = name.parse().map_err(|_| wrong(()))?;
        let value = HeaderValue::from_str(value.get_ref()).map_err(|_| wrong(()))?;
        Ok((name, value))
    });
    let remove = written.remove.iter().map(|name| {
        let parsed = name.get_ref().parse();
        parsed.map_err(|_| place.wrong(name, 0, "no name of a header"))
    });
    Ok(Rule {
        name: written.name.unwrap_or_else(|| format!("rule {number}")),
        source: written.when.get_ref().clone(),
        of_tcp: names(&when, &["tcp"]),
        when,
        early,
        congestion: place.with(written.congestion.as_ref(), algorithm)?,
        pace,
        notsent_lowat_bytes: place.with(written.notsent_lowat.as_ref(), |text| {
            u32::try_from(bytes(text)?).map_err(|_| "less than 4GiB".to_owned())
        })?,
        initial_window_packets: written
            .initial_window
            .as_ref()
            .map(|packets| window(packets, place))
            .transpose()?,
        set: set.collect::<Result<_, _>>()?,
        remove: remove.collect::<Result<_, _>>()?,
    })
}

fn names(program: &Program, variables: &[&str]) -> bool {
    let references = program.references();
    variables.iter().any(|name| references.has_variable(name))
}

fn pace(written: &Spanned<PaceWritten>, place: &Place<'_>) -> Result<Pace, Wrong> {
    let fixed = |kbps: f64| {
        if kbps > 0.0 {
            Ok(Pace::Fixed(kbps))
        } else {
            Err(place.wrong(written, 0, "a pace is a positive number of kbit/s"))
        }
    };
    match written.get_ref() {
        PaceWritten::Whole(kbps) => fixed(*kbps as f64),
        PaceWritten::Number(kbps) => fixed(*kbps),
        PaceWritten::Expression(source) => {
            let program = place.expression(written, source)?;
            if let Err(why) = types_fit(&program) {
                return Err(place.wrong(written, 0, &why));
            }
            Ok(Pace::Computed(program))
        }
    }
}

/// Tries an expression with a player's usual words: `2 * cmcd.tb` has two types of number, and
/// would fail for each request.
fn types_fit(program: &Program) -> Result<(), String> {
    use cel::{ExecutionError, Value};
    let mut headers = http::HeaderMap::new();
    let words = "bl=1000,br=1000,d=4000,mtp=9000,rtp=9000,tb=6000,pr=1,dl=1000";
    headers.insert("cmcd-request", HeaderValue::from_static(words));
    let cmcd = crate::cmcd::Cmcd::of(None, &headers);
    let facts = super::Facts {
        method: &http::Method::GET,
        host: "",
        path: "/",
        query: "",
        client: std::net::Ipv4Addr::LOCALHOST.into(),
        headers: &headers,
        cmcd: &cmcd,
        answer: None,
        tcp: None,
    };
    match facts.evaluate(program, &Networks::default()) {
        Ok(Value::Float(_) | Value::Int(_) | Value::UInt(_)) => Ok(()),
        Ok(_) => Err("a pace is a number of kbit/s".into()),
        // Not every player says everything.
        Err(ExecutionError::NoSuchKey(_)) => Ok(()),
        Err(error) => Err(format!("{error} (write numbers with a point, such as 2.0)")),
    }
}

fn pool(name: &str, known: &[&str]) -> Result<Arc<str>, String> {
    if known.contains(&name) {
        return Ok(name.into());
    }
    let known = known.join(", ");
    Err(format!("there is no [pool.{name}]; there are: {known}"))
}

fn window(packets: &Spanned<u32>, place: &Place<'_>) -> Result<u32, Wrong> {
    let given = *packets.get_ref();
    if (1..=INITIAL_WINDOW_MAX).contains(&given) {
        return Ok(given);
    }
    let why = format!("an initial window has 1 to {INITIAL_WINDOW_MAX} packets");
    Err(place.wrong(packets, 0, &why))
}

fn algorithm(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.len() < 16 && name.bytes().all(plain) {
        Ok(name.to_owned())
    } else {
        Err("an algorithm is a short name such as bbr or cubic".into())
    }
}

fn deny(status: &Spanned<u16>, place: &Place<'_>) -> Result<StatusCode, Wrong> {
    let code = StatusCode::from_u16(*status.get_ref()).ok();
    let error = |code: &StatusCode| code.is_client_error() || code.is_server_error();
    code.filter(error)
        .ok_or_else(|| place.wrong(status, 0, "a status from 400 to 599"))
}

fn delay(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short <= DELAY_MAX => Ok(short),
        _ => Err("a delay is at most 60s".into()),
    }
}
