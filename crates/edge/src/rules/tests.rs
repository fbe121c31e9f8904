use std::net::IpAddr;

use http::{HeaderMap, Method};

use super::*;
use net::cmcd::CmcdData;

fn rules(text: &str) -> RuleSet {
    read_rules("edge.toml", text).unwrap()
}

fn facts<'a>(path: &'a str, headers: &'a HeaderMap, cmcd: &'a CmcdData) -> RuleVariables<'a> {
    RuleVariables {
        method: &Method::GET,
        host: headers
            .get("host")
            .map_or("", |host| host.to_str().unwrap()),
        path,
        query: "",
        client: "10.1.2.3".parse::<IpAddr>().unwrap(),
        headers,
        cmcd,
        response: Some((200, headers, Some(5000), "hit")),
        tcp: None,
    }
}

fn player(words: &'static str) -> (HeaderMap, CmcdData) {
    let mut headers = HeaderMap::new();
    headers.insert("cmcd-request", HeaderValue::from_static(words));
    let cmcd = CmcdData::parse_cmcd(None, &headers);
    (headers, cmcd)
}

const ISSUE: &str = r#"
memory = "1GiB"

[networks]
mobile = ["10.0.0.0/8"]

[[rule]]
when = 'path.endsWith(".m4s") && client.net == "mobile"'
congestion = "bbr"
pace = "1.5 * cmcd.tb"

[[rule]]
name = "rest"
when = 'true'
congestion = "reno"
"#;

#[test]
fn the_first_matching_rule_applies() {
    let rules = rules(ISSUE);
    let (headers, cmcd) = player("tb=6000");
    let choice = rules
        .choose_response_rule(&facts("/a.m4s", &headers, &cmcd))
        .unwrap();
    assert_eq!(choice.rule.name, "rule 1");
    assert_eq!(choice.transport.congestion.as_deref(), Some("bbr"));
    assert_eq!(choice.transport.pace_bytes_per_s, Some(9_000_000 / 8));
    let choice = rules
        .choose_response_rule(&facts("/a.mpd", &headers, &cmcd))
        .unwrap();
    assert_eq!(choice.rule.name, "rest");
    // Without `tb` in the CMCD data, there is no pacing rate, but the rule's other actions apply.
    let (headers, cmcd) = player("bl=1000");
    let choice = rules
        .choose_response_rule(&facts("/a.m4s", &headers, &cmcd))
        .unwrap();
    assert_eq!(choice.transport.congestion.as_deref(), Some("bbr"));
    assert_eq!(choice.transport.pace_bytes_per_s, None);
}

#[test]
fn a_rule_can_pace_by_buffer() {
    let text = "[[rule]]\nwhen = 'true'\npace = 'ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb'";
    let rules = rules(text);
    for (words, kbps) in [
        ("bl=0,tb=1000", 3000),
        ("bl=15000,tb=1000", 2250),
        ("bl=30000,tb=1000", 1500),
        ("bl=90000,tb=1000", 1500),
    ] {
        let (headers, cmcd) = player(words);
        let choice = rules
            .choose_response_rule(&facts("/", &headers, &cmcd))
            .unwrap();
        assert_eq!(
            choice.transport.pace_bytes_per_s,
            Some(kbps * 125),
            "{words}"
        );
    }
}

#[test]
fn conditions_can_use_all_variables() {
    for (when, expected) in [
        ("method == 'GET' && path == '/a' && query == ''", true),
        ("client.address == '10.1.2.3' && client.net == ''", true),
        ("header['x-a'] == 'b'", true),
        ("header['x-none'] == 'b'", false),
        ("'x-none' in header", false),
        ("has(cmcd.tb) && cmcd.tb > 5999", true),
        ("has(cmcd.br)", false),
        ("response.status == 200 && response.bytes <= 5000", true),
        ("response.type.startsWith('video/')", true),
        ("cache == 'hit'", true),
        ("has(tcp.rtt_ms) && tcp.rtt_ms > 50", false),
        ("path.matches('^/[a-c]$')", true),
        ("path", false),
    ] {
        let text = format!("[[rule]]\nwhen = \"{when}\"");
        let rules = rules(&text);
        let (mut headers, cmcd) = player("tb=6000");
        headers.insert("x-a", "b".parse().unwrap());
        headers.insert("content-type", "video/mp4".parse().unwrap());
        let found = rules
            .choose_response_rule(&facts("/a", &headers, &cmcd))
            .is_some();
        assert_eq!(
            found,
            expected,
            "{when}: {:?}",
            rules.explain_verdicts(&facts("/a", &headers, &cmcd))
        );
    }
}

#[test]
fn invalid_rules_are_reported_with_their_place() {
    for (text, parts) in [
        (
            "[[rule]]\nwhen = 'path ='",
            &["edge.toml:2: ", "\n  when = 'path ='\n"][..],
        ),
        (
            "[[rule]]\nwhen = 'pth == \"a\"'",
            &[
                "edge.toml:2: unknown variable pth; use one of method",
                "        ^",
            ],
        ),
        (
            "[[rule]]\nwhen = 'true'\npace = '2 * cmcd.tb'",
            &["edge.toml:3: ", "2.0"],
        ),
        (
            "[[rule]]\nwhen = 'true'\npace = -1",
            &["edge.toml:3: pace must be a positive"],
        ),
        ("[[rule]]\nwhen = 'true'\npase = 1", &["pase"]),
        (
            "[[rule]]\nwhen = 'true'\nttl = 'soon'",
            &["edge.toml:3: expected a duration"],
        ),
        (
            "[[rule]]\nwhen = 'true'\ndeny = 200",
            &["edge.toml:3: deny must be a status from 400"],
        ),
        (
            "[[rule]]\nwhen = 'true'\ndelay = '2h'",
            &["delay must be at most 60s"],
        ),
        (
            "[[rule]]\nwhen = 'true'\ncongestion = 'a b'",
            &["congestion must be"],
        ),
        (
            "[[rule]]\nwhen = 'response.status == 200'\npass = true",
            &["before the response is known"],
        ),
        (
            "[[rule]]\nwhen = 'true'\nset = { 'X' = \"a\\nb\" }",
            &["is not a valid header"],
        ),
        (
            "[networks]\na = ['10.0.0.0/99']",
            &["edge.toml:2: ", "invalid network"],
        ),
        ("[[rule]]\npass = true", &["missing field `when`"]),
    ] {
        let wrong = read_rules("edge.toml", text).unwrap_err().0;
        for part in parts {
            assert!(wrong.contains(part), "{text}\n{wrong}");
        }
    }
}

#[test]
fn request_actions_need_no_response() {
    let text = "[[rule]]\nwhen = 'response.status == 200'\ncongestion = 'bbr'\n\
                [[rule]]\nwhen = 'path == \"/x\"'\ndeny = 403\n\
                [[rule]]\nwhen = 'true'\nttl = '9s'\ndelay = '5ms'";
    let rules = rules(text);
    let (headers, cmcd) = player("tb=6000");
    let early = |path| {
        let facts = RuleVariables {
            response: None,
            ..facts(path, &headers, &cmcd)
        };
        rules.find_request_actions(&facts).unwrap().1
    };
    assert_eq!(early("/x").deny.unwrap(), 403);
    assert_eq!(early("/y").ttl, Some(Duration::from_secs(9)));
}
