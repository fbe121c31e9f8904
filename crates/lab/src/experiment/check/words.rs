//! Whether texts mean something, with every arm's values filled in.

use super::{Faults, plans};
use crate::experiment::arms::{Arm, fill};
use crate::experiment::deploy::{Where, stands_for};
use crate::experiment::document::{Document, Link};
use crate::link::Shape;
use net::config::duration;
use toml::Spanned;

pub(super) fn check(document: &Document, faults: &mut Faults<'_>) {
    for plan in plans(document) {
        for arm in &plan.arms {
            for (name, link) in &document.link {
                one_link(name.get_ref(), link, arm, faults);
            }
            commands(document, arm, faults);
        }
    }
    for (name, sink) in &document.sink {
        let name = name.get_ref();
        if let Some(Err(what)) = sink.timeout.as_ref().map(|text| duration(text.get_ref())) {
            let span = sink.timeout.as_ref().map_or(0..0, Spanned::span);
            faults.add(span, &format!("sink.{name}.timeout"), what);
        }
        for (quantity, pointer) in &sink.measure {
            if !pointer.get_ref().starts_with('/') {
                let path = format!("sink.{name}.measure.{}", quantity.get_ref());
                let what = "a place in JSON is a pointer, such as /time/total";
                faults.add(pointer.span(), &path, what);
            }
        }
        if sink.measure.is_empty() {
            let what = "say what it measures: measure.seconds = '/seconds'";
            faults.add(sink.run.span(), &format!("sink.{name}.measure"), what);
        }
    }
    for (name, function) in &document.function {
        let path = function.health.as_ref();
        if let Some(wrong) = path.filter(|path| !path.get_ref().starts_with('/')) {
            let at = format!("function.{}.health", name.get_ref());
            faults.add(wrong.span(), &at, "a path begins with /");
        }
    }
    bounds(document, faults);
}

fn bounds(document: &Document, faults: &mut Faults<'_>) {
    if let Some(text) = &document.bounds.link_late
        && let Err(what) = duration(text.get_ref())
    {
        faults.add(text.span(), "bounds.link-late", what);
    }
    if let Some(text) = &document.bounds.steal
        && let Err(what) = crate::link::fraction(text.get_ref())
    {
        faults.add(text.span(), "bounds.steal", what);
    }
}

/// A link's texts by key.
pub(in crate::experiment) fn asked<'a>(link: &'a Link, key: &str) -> Option<&'a Spanned<String>> {
    match key {
        "rate" => link.rate.as_ref(),
        "up-rate" => link.up_rate.as_ref(),
        "delay" => link.delay.as_ref(),
        "jitter" => link.jitter.as_ref(),
        "queue" => link.queue.as_ref(),
        "loss" => link.loss.as_ref(),
        "up-loss" => link.up_loss.as_ref(),
        _ => None,
    }
}

fn one_link(name: &str, link: &Link, arm: &Arm, faults: &mut Faults<'_>) {
    let mut unknown = None;
    let get = |key: &str| {
        let text = asked(link, key)?;
        fill(text.get_ref(), &|name| arm.get(name).cloned()).ok()
    };
    for key in [
        "rate", "up-rate", "delay", "jitter", "queue", "loss", "up-loss",
    ] {
        let Some(text) = asked(link, key) else {
            continue;
        };
        if let Err(unfilled) = fill(text.get_ref(), &|name| arm.get(name).cloned()) {
            let what = format!("{{{unfilled}}} is no variable of sweep");
            unknown = Some((text.span(), format!("link.{name}.{key}"), what));
        }
    }
    if let Some((span, path, what)) = unknown {
        faults.add(span, &path, what);
    } else if let Err((key, what)) = Shape::read(&get) {
        let span = asked(link, key).map_or(link.between.span(), Spanned::span);
        faults.add(span, &format!("link.{name}.{key}"), what);
    }
    for algorithm in &link.compete {
        if let Err(unfilled) = fill(algorithm.get_ref(), &|name| arm.get(name).cloned()) {
            let what = format!("{{{unfilled}}} is no variable of sweep");
            faults.add(algorithm.span(), &format!("link.{name}.compete"), what);
        }
    }
}

fn commands(document: &Document, arm: &Arm, faults: &mut Faults<'_>) {
    let functions = document.function.iter().map(|(name, function)| {
        let port = Some(*function.port.get_ref());
        ("function", name, &function.run, &function.at, port)
    });
    let sinks = document.sink.iter();
    let sinks = sinks.map(|(name, sink)| ("sink", name, &sink.run, &sink.at, None));
    for (kind, name, run, at, port) in functions.chain(sinks) {
        let place = at.as_ref().map(|at| at.get_ref().as_str());
        let known = |name: &str| stands_for(name, document, arm, &Where::unbuilt(place, port));
        if let Err(unfilled) = fill(run.get_ref(), &known) {
            let what = match document.function.contains_key(unfilled.as_str()) {
                true => format!("{{{unfilled}}}: no link joins this place and that function's"),
                false => format!(
                    "{{{unfilled}}} stands for nothing: it is a source, a function or a variable; \
                     written {{{{{unfilled}}}}} it is left alone"
                ),
            };
            faults.add(run.span(), &format!("{kind}.{}.run", name.get_ref()), what);
        }
    }
}
