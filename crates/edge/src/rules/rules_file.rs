//! The tables `[[rule]]` and `[networks]` of the settings file. Error messages show the position in
//! the file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cel::Program;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use net::Cidr;
use net::config::{UsageError, parse_bytes, parse_duration};
use serde::Deserialize;
use toml::Spanned;

use super::named_networks::NamedNetworks;
use super::variables::{REQUEST_VARIABLES, RESPONSE_VARIABLES};
use super::{PacingRate, RequestActions, Rule, RuleSet};

/// Names of the tables that declare rules, networks and pools in the settings file.
pub const TABLES: &[&str] = &["rule", "networks", "pool"];

#[derive(Deserialize)]
struct RulesFile {
    #[serde(default)]
    rule: Vec<RuleTable>,
    #[serde(default)]
    networks: BTreeMap<String, Vec<Spanned<String>>>,
    /// The pools. Only the names are used here, because rules refer to pools by name.
    #[serde(default)]
    pool: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RuleTable {
    name: Option<String>,
    when: Spanned<String>,
    congestion: Option<Spanned<String>>,
    pace: Option<Spanned<PaceValue>>,
    notsent_lowat: Option<Spanned<String>>,
    initial_window: Option<Spanned<u32>>,
    pool: Option<Spanned<String>>,
    ttl: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    #[serde(default)]
    pass: bool,
    #[serde(default)]
    ignore_client_no_cache: bool,
    deny: Option<Spanned<u16>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    remove: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PaceValue {
    Whole(i64),
    Number(f64),
    Expression(String),
}

/// A delayed request occupies memory, so delays are bounded.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// Maximum initial congestion window, in packets. A larger window would send a burst instead of
/// probing the path.
const INITIAL_WINDOW_MAX: u32 = 1000;

/// Reads the rules of a settings file.
///
/// # Errors
/// The first error, with the file, the line, and a mark below the position of the error.
pub fn read_rules(path: &str, text: &str) -> Result<RuleSet, UsageError> {
    let file: RulesFile =
        toml::from_str(text).map_err(|error| UsageError(format!("{path}: {error}")))?;
    let place = FileText { path, text };
    let pools: Vec<&str> = file.pool.keys().map(String::as_str).collect();
    let mut networks = NamedNetworks::default();
    for (name, list) in &file.networks {
        for network in list {
            let cidr = Cidr::parse_network(network.get_ref());
            networks.add_network(name, cidr.map_err(|why| place.error_at(network, 0, &why))?);
        }
    }
    let rules = file.rule.into_iter().enumerate();
    let rules = rules.map(|(n, written)| build_rule(n + 1, written, &pools, &place));
    Ok(RuleSet {
        rules: rules.collect::<Result<_, _>>()?,
        networks,
    })
}

struct FileText<'a> {
    path: &'a str,
    text: &'a str,
}

impl FileText<'_> {
    /// Formats an error with the line of a value. Below the line, a mark points to the character
    /// that is `column` characters after the start of the value.
    fn error_at<T>(&self, value: &Spanned<T>, column: usize, why: &str) -> UsageError {
        let start = value.span().start;
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(line_start..).unwrap_or_default();
        let line = line.lines().next().unwrap_or_default();
        let indent = before.get(line_start..).unwrap_or_default().chars().count();
        UsageError(format!(
            "{}:{}: {why}\n  {line}\n  {}^",
            self.path,
            before.matches('\n').count() + 1,
            " ".repeat(indent + column)
        ))
    }

    fn parse_value<T>(
        &self,
        value: Option<&Spanned<String>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, UsageError> {
        let parse = |value: &Spanned<String>| {
            parse(value.get_ref()).map_err(|why| self.error_at(value, 0, &why))
        };
        value.map(parse).transpose()
    }

    /// Compiles an expression and checks that all its variables exist.
    fn compile_expression<T>(
        &self,
        value: &Spanned<T>,
        source: &str,
    ) -> Result<Program, UsageError> {
        let program = Program::compile(source).map_err(|errors| {
            let first = errors.errors.first();
            let column = first.map_or(0, |error| usize::try_from(error.pos.1).unwrap_or(0));
            let why = first.map_or("invalid expression", |error| error.msg.as_str());
            // The parser counts columns from 1, starting at the first character of the expression.
            // `error_at` counts from 0, starting at the quotation mark before that character. Both
            // therefore use the same number for each character.
            self.error_at(value, column, why)
        })?;
        for name in program.references().variables() {
            if !REQUEST_VARIABLES.contains(&name) && !RESPONSE_VARIABLES.contains(&name) {
                let column = source.find(name).map_or(0, |at| at + 1);
                let known = REQUEST_VARIABLES
                    .iter()
                    .chain(&RESPONSE_VARIABLES)
                    .copied()
                    .collect::<Vec<_>>();
                let why = format!("unknown variable {name}; use one of {}", known.join(", "));
                return Err(self.error_at(value, column, &why));
            }
        }
        Ok(program)
    }
}

fn build_rule(
    number: usize,
    written: RuleTable,
    pools: &[&str],
    place: &FileText<'_>,
) -> Result<Rule, UsageError> {
    let when = place.compile_expression(&written.when, written.when.get_ref())?;
    let late = uses_variable(&when, &RESPONSE_VARIABLES);
    let early = RequestActions {
        pass: written.pass,
        deny: written
            .deny
            .as_ref()
            .map(|status| parse_deny_status(status, place))
            .transpose()?,
        delay: place.parse_value(written.delay.as_ref(), parse_rule_delay)?,
        ttl: place.parse_value(written.ttl.as_ref(), parse_duration)?,
        pool: place.parse_value(written.pool.as_ref(), |name| check_pool_exists(name, pools))?,
        ignore_client_no_cache: written.ignore_client_no_cache,
    };
    if late && early != RequestActions::default() {
        let why = "pass, deny, delay, ttl, pool and ignore-client-no-cache apply before the \
                   response is known; this condition uses the response or the connection";
        return Err(place.error_at(&written.when, 0, why));
    }
    let pace = written
        .pace
        .as_ref()
        .map(|pace| self::parse_pace(pace, place))
        .transpose()?;
    let set = written.set.iter().map(|(name, value)| {
        let wrong = |_| {
            place.error_at(
                value,
                0,
                &format!("{name} is not a valid header with this value"),
            )
        };
        let name: HeaderName = name.parse().map_err(|_| wrong(()))?;
        let value = HeaderValue::from_str(value.get_ref()).map_err(|_| wrong(()))?;
        Ok((name, value))
    });
    let remove = written.remove.iter().map(|name| {
        let parsed = name.get_ref().parse();
        parsed.map_err(|_| place.error_at(name, 0, "invalid header name"))
    });
    Ok(Rule {
        name: written.name.unwrap_or_else(|| format!("rule {number}")),
        source: written.when.get_ref().clone(),
        needs_tcp: uses_variable(&when, &["tcp"]),
        when,
        request_actions: early,
        congestion: place.parse_value(written.congestion.as_ref(), check_congestion_name_syntax)?,
        pace,
        notsent_lowat_bytes: place.parse_value(written.notsent_lowat.as_ref(), |text| {
            u32::try_from(parse_bytes(text)?).map_err(|_| "the value must be below 4GiB".to_owned())
        })?,
        initial_window_packets: written
            .initial_window
            .as_ref()
            .map(|packets| check_initial_window(packets, place))
            .transpose()?,
        set_headers: set.collect::<Result<_, _>>()?,
        remove_headers: remove.collect::<Result<_, _>>()?,
    })
}

fn uses_variable(program: &Program, variables: &[&str]) -> bool {
    let references = program.references();
    variables.iter().any(|name| references.has_variable(name))
}

fn parse_pace(
    written: &Spanned<PaceValue>,
    place: &FileText<'_>,
) -> Result<PacingRate, UsageError> {
    let fixed = |kbps: f64| {
        if kbps > 0.0 {
            Ok(PacingRate::Fixed(kbps))
        } else {
            Err(place.error_at(written, 0, "pace must be a positive number of kbit/s"))
        }
    };
    match written.get_ref() {
        PaceValue::Whole(kbps) => fixed(*kbps as f64),
        PaceValue::Number(kbps) => fixed(*kbps),
        PaceValue::Expression(source) => {
            let program = place.compile_expression(written, source)?;
            if let Err(why) = check_number_types(&program) {
                return Err(place.error_at(written, 0, &why));
            }
            Ok(PacingRate::Computed(program))
        }
    }
}

/// Evaluates an expression with typical CMCD values, to reject mixed number types. For example,
/// `2 * cmcd.tb` would fail for every request, because `2` is an integer.
fn check_number_types(program: &Program) -> Result<(), String> {
    use cel::{ExecutionError, Value};
    let mut headers = http::HeaderMap::new();
    let words = "bl=1000,br=1000,d=4000,mtp=9000,rtp=9000,tb=6000,pr=1,dl=1000";
    headers.insert("cmcd-request", HeaderValue::from_static(words));
    let cmcd = net::cmcd::CmcdData::parse_cmcd(None, &headers);
    let facts = super::RuleVariables {
        method: &http::Method::GET,
        host: "",
        path: "/",
        query: "",
        client: std::net::Ipv4Addr::LOCALHOST.into(),
        headers: &headers,
        cmcd: &cmcd,
        response: None,
        tcp: None,
    };
    match facts.evaluate_program(program, &NamedNetworks::default()) {
        Ok(Value::Float(_) | Value::Int(_) | Value::UInt(_)) => Ok(()),
        Ok(_) => Err("pace must evaluate to a number of kbit/s".into()),
        // The expression may use a CMCD key that the typical values do not include.
        Err(ExecutionError::NoSuchKey(_)) => Ok(()),
        Err(error) => Err(format!(
            "{error}; write numbers with a decimal point, such as 2.0"
        )),
    }
}

fn check_pool_exists(name: &str, known: &[&str]) -> Result<Arc<str>, String> {
    if known.contains(&name) {
        return Ok(name.into());
    }
    let known = match known {
        [] => "none".to_owned(),
        known => known.join(", "),
    };
    Err(format!(
        "unknown pool {name}; add [pool.{name}], or use one of: {known}"
    ))
}

fn check_initial_window(packets: &Spanned<u32>, place: &FileText<'_>) -> Result<u32, UsageError> {
    let given = *packets.get_ref();
    if (1..=INITIAL_WINDOW_MAX).contains(&given) {
        return Ok(given);
    }
    let why = format!("initial-window must be between 1 and {INITIAL_WINDOW_MAX} packets");
    Err(place.error_at(packets, 0, &why))
}

fn check_congestion_name_syntax(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.len() < 16 && name.bytes().all(plain) {
        Ok(name.to_owned())
    } else {
        Err("congestion must be the name of an algorithm, such as bbr or cubic".into())
    }
}

fn parse_deny_status(
    status: &Spanned<u16>,
    place: &FileText<'_>,
) -> Result<StatusCode, UsageError> {
    let code = StatusCode::from_u16(*status.get_ref()).ok();
    let error = |code: &StatusCode| code.is_client_error() || code.is_server_error();
    code.filter(error)
        .ok_or_else(|| place.error_at(status, 0, "deny must be a status from 400 to 599"))
}

fn parse_rule_delay(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        short if short <= DELAY_MAX => Ok(short),
        _ => Err("delay must be at most 60s".into()),
    }
}
