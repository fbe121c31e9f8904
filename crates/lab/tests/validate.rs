//! Tests that faults of experiment documents are reported at the right path and line. Most of the
//! invalid documents are mutations of a valid document.

#![allow(clippy::unwrap_used)]

use lab::experiment::{DocumentFault, ExperimentDocument, check_document};

const GOOD: &str = r#"name = "good"
question = "Is it?"
rounds = 3
seed = 1

[sweep]
kind = ["a", "b"]
loss = ["0%", "1%"]

[scale.small]
rounds = 1
sweep.loss = ["0%"]

[source.film]
make = "touch film.mp4"

[place.viewer]
on = "host"
agents = 1

[function.origin]
run = "serve {film} {port}"
at = "server"
port = 8080
health = "/healthz"
input = ["film"]

[function.edge]
run = "edge http://{origin} {kind}"
at = "server"
port = 80
input = ["origin"]

[link.access]
between = ["viewer", "server"]
by = "us"
rate = "20mbit"
delay = "10ms"
jitter = "1ms"
queue = "1bdp"
loss = "{loss}"
compete = ["reno"]

[sink.players]
run = "get http://{edge}/ {kind}"
at = "viewer"
input = ["edge"]
measure.seconds = "/seconds"
measure.more = "/more"
series.mbps = { from = "steps.jsonl", t = "/t", value = "/mbps", times = 8e-6 }
histogram.latency = { from = "load.hdr", tag = "*/due" }
late-ms = "/lag p99"
cpus = "0-1"
warm-up = 1
timeout = "10s"

[bounds]
link-late = "2ms"
sink-late = "3ms"
steal = "5%"

[[expect]]
that = "it holds"
quantity = "seconds"
of.kind = "a"
to.kind = "b"
where.loss = "1%"
at-least = 1.0
at-most = 2.0

[quantity.mbps]
unit = "Mb/s"

[[plot]]
kind = "ecdf"
quantity = ["seconds", "latency"]
by = "kind"

[[plot]]
kind = "map"
quantity = "more"
x = "kind"
y = "loss"
of.loss = "0%"
to.loss = "1%"

[[plot]]
kind = "fit"
quantity = "mbps"
x = ["more", "mbps"]
knee = true
tail = "mbps"
"#;

fn find_faults(text: &str) -> Vec<DocumentFault> {
    match ExperimentDocument::parse_toml(text) {
        Ok(document) => check_document(text, &document),
        Err(fault) => vec![fault],
    }
}

/// Each line contains the text to replace, the replacement, and the path of the fault. The fault
/// must be reported on a changed line.
const MUTATIONS: &str = r#"
rounds = 3 => rounds = 0 => rounds
rounds = 3 => rounds = 10001 => rounds
rounds = 3 => rounds = -1 =>
rounds = 3 => rounds = 'three' =>
rounds = 3 => rounds = 3\nparallel = 0 => parallel
seed = 1 => seed = 1.5 =>
kind = ["a", "b"] => kind = [] => sweep.kind
kind = ["a", "b"] => kind = ["a", "a", "b"] => sweep.kind
kind = ["a", "b"] => kind = ["a", "b", [1]] => sweep.kind
kind = ["a", "b"] => kind = 'a' =>
loss = ["0%", "1%"] => loss = ["0%", "1%"]\nBad = [1] => sweep.Bad
loss = ["0%", "1%"] => loss = ["0%", "1%"]\nfilm = [1] => sweep.film
loss = ["0%", "1%"] => loss = ["0%", "1%"]\nport = [1] => sweep.port
rounds = 1 => rounds = 0 => scale.small.rounds
rounds = 1 => rounds = 1\nparallel = 65 => scale.small.parallel
sweep.loss = ["0%"] => sweep.lose = ["0%"] => scale.small.sweep.lose
sweep.loss = ["0%"] => sweep.loss = [] => sweep.loss
[source.film] => [source.Film] => source.Film
[source.film] => [source.film]\nmedia = 'x' => source.film
[function.origin] => [function."or.igin"] => function.or.igin
run = "serve {film} {port}" => run = "serve {movie}" => function.origin.run
run = "serve {film} {port}" => run = 7 =>
port = 8080 => port = 80 => function.origin.port
port = 8080 => port = 0 => function.origin.port
port = 8080 => port = 65536 =>
health = "/healthz" => health = "healthz" => function.origin.health
input = ["film"] => input = ["movie"] => function.origin.input
input = ["film"] => input = ["access"] => function.origin.input
{origin} {kind} => {orgin} {kind} => function.edge.run
{origin} {kind} => {origin} {kin} => function.edge.run
between = ["viewer", "server"] => between = ["viewer"] =>
by = "us" => by = "them" => link.access.by
by = "us" => by = 1 =>
rate = "20mbit" => rate = "20" => link.access.rate
rate = "20mbit" => rate = "{rate}" => link.access.rate
rate = "20mbit" => rate = "{kind}" => link.access.rate
rate = "20mbit" => rate = "trace:no-such-file" => link.access.rate
rate = "20mbit" => rate = 20 =>
delay = "10ms" => delay = "10" => link.access.delay
delay = "10ms" => delay = "-10ms" => link.access.delay
jitter = "1ms" => jitter = "11ms" => link.access.jitter
queue = "1bdp" => queue = "1" => link.access.queue
queue = "1bdp" => queue = "many" => link.access.queue
loss = "{loss}" => loss = "101%" => link.access.loss
loss = "{loss}" => loss = "{lose}" => link.access.loss
loss = "{loss}" => loss = "{loss}"\nup-loss = "x" => link.access.up-loss
loss = "{loss}" => loss = "{loss}"\nup-rate = "0bit" => link.access.up-rate
compete = ["reno"] => compete = ["{cc}"] => link.access.compete
compete = ["reno"] => compete = "reno" =>
[sink.players] => [sink.edge] => sink.edge
[sink.players] => [sink.PLAYERS] => sink.PLAYERS
get http://{edge}/ => get http://{port}/ => sink.players.run
at = "viewer" => at = "moon" => sink.players.at
at = "viewer" => on = "viewer" =>
input = ["edge"] => input = ["edges"] => sink.players.input
measure.seconds = "/seconds" => measure.seconds = "seconds" => sink.players.measure.seconds
measure.seconds = "/seconds" => measure.Seconds = "/seconds" => measure.Seconds
measure.seconds = "/seconds" => measure.film = "/seconds" => measure.film
late-ms = "/lag p99" => late-ms = "/lag 99" => sink.players.late-ms
late-ms = "/lag p99" => late-ms = "lag" => sink.players.late-ms
cpus = "0-1" => cpus = "1-0" => sink.players.cpus
cpus = "0-1" => cpus = [-1] => sink.players.cpus
cpus = "0-1" => cpus = 0 => sink.players.cpus
measure.seconds = "/seconds" => measure.seconds = "most /seconds / 0" => sink.players.measure.seconds
measure.seconds = "/seconds" => measure.seconds = "../f.hdr p99" => sink.players.measure.seconds
[place.viewer] => [place.Viewer] => place.Viewer
[place.viewer] => [place.here] => place.here
agents = 1 => agents = 0 => place.viewer.agents
agents = 1 => agents = 2 => place.viewer.agents
agents = 1 => agents = 257 => place.viewer.agents
on = "host" => on = 7 =>
measure.more = "/more" => measure.more = "more" => sink.players.measure.more
series.mbps => series.seconds => series.seconds
from = "steps.jsonl" => from = "a#b" => sink.players.series.mbps.from
from = "steps.jsonl" => from = "../a" => sink.players.series.mbps.from
t = "/t" => t = "t" => sink.players.series.mbps.t
times = 8e-6 => times = 0.0 => sink.players.series.mbps.times
times = 8e-6 => times = nan => sink.players.series.mbps.times
from = "load.hdr" => from = "" => sink.players.histogram.latency.from
tag = "*/due" => tags = "*/due" =>
[quantity.mbps] => [quantity.kbps] => quantity.kbps
kind = "ecdf" => kind = "pie" =>
by = "kind" => by = "kinds" => plot[0].by
by = "kind" => by = 7 => plot[0].by
by = "kind" => by = "kind"\nx = "loss" => plot[0].x
quantity = "more" => quantity = "mbps" => plot[1].quantity
x = "kind" => x = "more" => plot[1].x
y = "loss" => y = "lose" => plot[1].y
of.loss = "0%" => of.loss = "9%" => plot[1].of.loss
x = ["more", "mbps"] => x = ["more", "latency"] => plot[2].x
tail = "mbps" => tail = "latency" => plot[2].tail
warm-up = 1 => warm-up = -1 =>
warm-up = 1 => warmup = 1 =>
timeout = "10s" => timeout = "10" => sink.players.timeout
link-late = "2ms" => link-late = "2" => bounds.link-late
sink-late = "3ms" => sink-late = "3" => bounds.sink-late
steal = "5%" => steal = "5" => bounds.steal
steal = "5%" => stolen = "5%" =>
quantity = "seconds" => quantity = "second" => expect[0].quantity
quantity = "seconds" => quantity = "access.lose" => expect[0].quantity
of.kind = "a" => of.kinds = "a" => expect[0].of.kinds
of.kind = "a" => of.kind = "c" => expect[0].of.kind
to.kind = "b" => to.kind = 1 => expect[0].to.kind
where.loss = "1%" => where.loss = "2%" => expect[0].where.loss
where.loss = "1%" => where.los = "1%" => expect[0].where.los
at-least = 1.0 => at-least = 'much' =>
"#;

/// Mutations whose fault may be reported outside the changed lines. For example, the fault is at
/// the start of the table that contains the change. If two keys conflict, the fault can be at the
/// unchanged key.
const ELSEWHERE: &str = r#"
at = "viewer" =>  => sink.players.at
measure.seconds = "/seconds"\nmeasure.more = "/more"\nseries.mbps = { from = "steps.jsonl", t = "/t", value = "/mbps", times = 8e-6 }\nhistogram.latency = { from = "load.hdr", tag = "*/due" } =>  => sink.players.measure
kind = "ecdf" => kind = "box" => plot[0].quantity
kind = "ecdf" => kind = "time" => plot[0].quantity
by = "kind" => by = "kind"\nknee = true => plot[0]
by = "kind" => by = "kind"\ny = "loss" => plot[0]
x = "kind" =>  => plot[1].x
y = "loss" =>  => plot[1].y
of.loss = "0%"\nto.loss = "1%" => of.loss = "0%" => plot[1].to
[source.film]\nmake = "touch film.mp4" => [source.film] => source.film
at-least = 1.0 => at-least = 3.0 => expect[0]
at-least = 1.0 => at-least = nan => expect[0]
at-least = 1.0 => found = 'x' => expect[0]
at-least = 1.0 => found = 'x'\nsource = [1, 2] => expect[0]
at-least = 1.0\nat-most = 2.0 => source = [1, 2] => expect[0]
at-least = 1.0\nat-most = 2.0 => found = 'x'\nsource = [3, 2] => expect[0]
at-least = 1.0\nat-most = 2.0 => found = 'x'\nsource = 'other' =>
to.kind = "b" => to.loss = "0%" => expect[0].to
input = ["film"] => input = ["edge"] => function.edge.input
input = ["film"] => input = ["edge"] => function.origin.input
between = ["viewer", "server"] => between = ["viewer", "viewer"] => link.access.between
[sink.players] => [link.twin]\nbetween = ["server", "viewer"]\n\n[sink.players] => link.twin.between
delay = "10ms"\njitter = "1ms" =>  => link.access.queue
"#;

#[test]
fn the_valid_document_is_accepted() {
    assert_eq!(find_faults(GOOD), []);
}

#[test]
fn every_mutation_is_refused_at_its_place() {
    for (from, to, path) in table_rows(MUTATIONS) {
        let text = GOOD.replacen(&from, &to, 1);
        let begins = GOOD[..GOOD.find(&from).unwrap()].matches('\n').count() + 1;
        let lines = begins..=begins + to.matches('\n').count();
        let found = find_faults(&text);
        let right = |fault: &DocumentFault| fault.path == path && lines.contains(&fault.line);
        assert!(found.iter().any(right), "{from} -> {to}: {found:?}");
    }
    for (from, to, path) in table_rows(ELSEWHERE) {
        assert!(GOOD.contains(&from), "{from}");
        let found = find_faults(&GOOD.replacen(&from, &to, 1));
        assert!(
            found.iter().any(|fault| fault.path == path),
            "{from} -> {to}: {found:?}"
        );
    }
}

/// Returns the three columns of each line of a table. In a table, `\n` stands for a line break.
fn table_rows(table: &str) -> impl Iterator<Item = (String, String, String)> {
    table.trim().lines().map(|line| {
        let mut columns = line
            .split(" =>")
            .map(|text| text.trim().replace("\\n", "\n"));
        let mut column = || columns.next().unwrap();
        (column(), column(), column())
    })
}

#[test]
fn an_unknown_key_is_refused_on_its_line() {
    let mut tried = 0;
    for (number, line) in GOOD.lines().enumerate() {
        let free = [
            "kind",
            "loss = [",
            "sweep.",
            "of.",
            "to.",
            "where.",
            "measure.",
            "series.",
            "histogram.",
        ];
        let Some((key, _)) = line.split_once(" = ") else {
            continue;
        };
        if free.iter().any(|names| line.starts_with(names)) {
            continue;
        }
        let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
        lines.insert(number + 1, format!("{key}-of-old = 1"));
        let found = find_faults(&lines.join("\n"));
        assert_eq!(found[0].line, number + 2, "{key}: {found:?}");
        assert!(
            found[0].what.contains(&format!("{key}-of-old")),
            "{found:?}"
        );
        tried += 1;
    }
    assert!(tried > 25, "{tried}");
}

#[test]
fn only_mergeable_sinks_run_in_parts() {
    let text = |measure: &str, at: &str| {
        format!(
            "name='x'\nquestion='x'\nrounds=1\n[place.a]\nagents=2\n[place.b]\n\
             [function.f]\nrun='x'\nport=80\nat='{at}'\n\
             [sink.s]\nrun='echo'\nat='a'\nmeasure.x='{measure}'\n"
        )
    };
    for (measure, at, path) in [
        ("sum /x", "b", None),
        ("/x p99", "b", None),
        ("/x", "b", Some("measure.x")),
        ("sum /x", "a", Some("place.a.agents")),
        ("sum /x'\nseries.y.from='/y", "b", Some("series.y")),
    ] {
        let found = find_faults(&text(measure, at));
        assert_eq!(
            found.first().map(|fault| fault.path.as_str()),
            path,
            "{found:?}"
        );
    }
    // Without links, all places share one network namespace, so two functions cannot use the same
    // port.
    let two = text("sum /x", "b") + "[place.c]\n[function.g]\nrun='x'\nport=80\nat='c'\n";
    assert_eq!(find_faults(&two)[0].path, "function.g.port");
}

#[test]
fn places_exist_only_with_links_and_arms_are_bounded() {
    let alone = "name='x'\nquestion='x'\nrounds=1\n[sink.s]\nrun='echo'\nmeasure.x='/x'\n";
    assert_eq!(find_faults(alone), []);
    let placed = format!("{alone}at = 'moon'\n");
    assert_eq!(find_faults(&placed)[0].path, "sink.s.at");
    let values: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let values = values.join(",");
    let many = format!("{alone}[sweep]\na=[{values}]\nb=[{values}]\n");
    assert_eq!(
        (
            find_faults(&many)[0].path.as_str(),
            find_faults(&many)[0].line
        ),
        ("sweep", 8)
    );
    let grown = format!(
        "{alone}[sweep]\na=[1]\nb=[1]\n[scale.whole]\nsweep.a=[{values}]\nsweep.b=[{values}]\n"
    );
    assert_eq!(
        (
            find_faults(&grown)[0].path.as_str(),
            find_faults(&grown)[0].line
        ),
        ("scale.whole.sweep", 11)
    );
    for broken in ["", "=", "name", "[sink", "\u{0}", "name='x'\nname='y'"] {
        assert_eq!(find_faults(broken).len(), 1, "{broken}");
    }
}

#[test]
fn names_scales_and_values_are_bounded() {
    let alone = "name='x'\nquestion='x'\nrounds=1\n[sink.s]\nrun='echo'\nmeasure.x='/x'\n";
    let repeat = |times: usize, text: fn(usize) -> String| (0..times).map(text).collect::<String>();
    let variables = repeat(1000, |n| format!("v{n}=[1]\n"));
    let scales = repeat(101, |n| format!("[scale.s{n}]\nrounds=1\n"));
    let values = repeat(1001, |n| format!("{n},"));
    for (text, fault) in [
        (format!("[sweep]\n{variables}"), "1002 names; at most 1000"),
        (scales, "101 scales; at most 100"),
        (
            format!("[sweep]\na=[{values}]\n"),
            "1001 values; at most 1000",
        ),
        (
            format!("[sweep]\na=[1]\n[scale.s]\nsweep.a=[{values}]\n"),
            "1001 values; at most 1000",
        ),
    ] {
        let found = find_faults(&format!("{alone}{text}"));
        assert_eq!(found.len(), 1, "{fault}");
        assert_eq!(found[0].what, fault);
    }
}
