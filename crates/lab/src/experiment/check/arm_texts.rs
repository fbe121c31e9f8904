//! Checks all texts of a document after the values of every arm have been filled in.

use super::fault_collector::FaultCollector;
use crate::experiment::arms::{Arm, RunPlan, UnknownPlaceholder, fill_placeholders};
use crate::experiment::cpus::CpuList;
use crate::experiment::document::{ExperimentDocument, LinkSpec, SinkSpec};
use crate::experiment::placeholders::{RunContext, resolve_placeholder};
use crate::experiment::quantity::QuantityLocator;
use crate::experiment::series_and_histograms::find_location_fault;
use crate::link::{LinkSettingError, LinkShape};
use net::config::parse_duration;
use toml::Spanned;

pub(super) fn check_arm_texts(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    for plan in RunPlan::plan_all_scales(document) {
        for arm in &plan.arms {
            for (name, link) in &document.link {
                check_link(name.get_ref(), link, arm, faults);
            }
            check_commands(document, arm, faults);
        }
    }
    for (name, sink) in &document.sink {
        let name = name.get_ref();
        if let Some(Err(what)) = sink
            .timeout
            .as_ref()
            .map(|text| parse_duration(text.get_ref()))
        {
            let span = sink.timeout.as_ref().map_or(0..0, Spanned::span);
            faults.add_fault(span, &format!("sink.{name}.timeout"), what);
        }
        let measured = sink.measure.iter();
        let measured = measured.map(|(name, text)| (format!("measure.{}", name.get_ref()), text));
        let late = sink.late_ms.iter().map(|text| ("late-ms".to_owned(), text));
        for (key, text) in measured.chain(late) {
            if let Err(what) = QuantityLocator::parse_locator(text.get_ref()) {
                faults.add_fault(text.span(), &format!("sink.{name}.{key}"), what.to_string());
            }
        }
        check_result_sources(name, sink, faults);
    }
    for (name, function) in &document.function {
        let path = function.health.as_ref();
        if let Some(wrong) = path.filter(|path| !path.get_ref().starts_with('/')) {
            let at = format!("function.{}.health", name.get_ref());
            faults.add_fault(wrong.span(), &at, "a path must start with /");
        }
    }
    let functions = document.function.iter();
    let functions = functions.map(|(name, function)| ("function", name, &function.cpus));
    let sinks = document
        .sink
        .iter()
        .map(|(name, sink)| ("sink", name, &sink.cpus));
    for (kind, name, cpus) in functions.chain(sinks) {
        if let Some((cpus, Err(what))) = cpus
            .as_ref()
            .map(|c| (c, CpuList::parse_cpu_list(c.get_ref())))
        {
            faults.add_fault(
                cpus.span(),
                &format!("{kind}.{}.cpus", name.get_ref()),
                what.to_string(),
            );
        }
    }
    check_run_bound_texts(document, faults);
}

fn check_result_sources(name: &str, sink: &SinkSpec, faults: &mut FaultCollector<'_>) {
    let at = |kind: &str, quantity: &Spanned<String>, key: &str| {
        format!("sink.{name}.{kind}.{}{key}", quantity.get_ref())
    };
    let series = sink.series.iter().map(|(quantity, series)| {
        let pointers = [("t", &series.t), ("value", &series.value)];
        for (key, pointer) in pointers {
            if let Some(wrong) = pointer.as_ref().filter(|p| !p.get_ref().starts_with('/')) {
                let what = "write a JSON pointer into each item, such as /value";
                faults.add_fault(
                    wrong.span(),
                    &at("series", quantity, &format!(".{key}")),
                    what,
                );
            }
        }
        ("series", quantity, &series.from, &series.times)
    });
    let series: Vec<_> = series.collect();
    let histograms = sink.histogram.iter();
    let histograms = histograms.map(|(name, one)| ("histogram", name, &one.from, &one.times));
    for (kind, quantity, from, times) in series.into_iter().chain(histograms) {
        if let Some(what) = find_location_fault(from.get_ref()) {
            faults.add_fault(from.span(), &at(kind, quantity, ".from"), what);
        }
        if let Some(wrong) = times.as_ref().filter(|times| !times.get_ref().is_normal()) {
            faults.add_fault(
                wrong.span(),
                &at(kind, quantity, ".times"),
                "a factor must be a number other than 0",
            );
        }
    }
    if sink.measure.is_empty() && sink.series.is_empty() && sink.histogram.is_empty() {
        let what =
            "the sink measures nothing; add a quantity, such as measure.seconds = '/seconds'";
        faults.add_fault(sink.run.span(), &format!("sink.{name}.measure"), what);
    }
}

fn check_run_bound_texts(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let bounds = &document.bounds;
    for (path, text) in [
        ("bounds.link-late", &bounds.link_late),
        ("bounds.sink-late", &bounds.sink_late),
    ] {
        if let Some((text, Err(what))) = text
            .as_ref()
            .map(|text| (text, parse_duration(text.get_ref())))
        {
            faults.add_fault(text.span(), path, what);
        }
    }
    if let Some(text) = &document.bounds.steal
        && let Err(what) = crate::link::parse_percentage(text.get_ref())
    {
        faults.add_fault(text.span(), "bounds.steal", what.to_string());
    }
}

/// Returns the text of a link's setting.
pub(in crate::experiment) fn find_link_setting<'a>(
    link: &'a LinkSpec,
    key: &str,
) -> Option<&'a Spanned<String>> {
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

fn check_link(name: &str, link: &LinkSpec, arm: &Arm, faults: &mut FaultCollector<'_>) {
    let mut unknown = None;
    let get = |key: &str| {
        let text = find_link_setting(link, key)?;
        fill_placeholders(text.get_ref(), &|name| arm.get(name).cloned()).ok()
    };
    for key in [
        "rate", "up-rate", "delay", "jitter", "queue", "loss", "up-loss",
    ] {
        let Some(text) = find_link_setting(link, key) else {
            continue;
        };
        if let Err(UnknownPlaceholder(unfilled)) =
            fill_placeholders(text.get_ref(), &|name| arm.get(name).cloned())
        {
            let what = format!("{{{unfilled}}}: sweep does not define this variable");
            unknown = Some((text.span(), format!("link.{name}.{key}"), what));
        }
    }
    if let Some(by) = link
        .by
        .as_ref()
        .filter(|by| !matches!(by.get_ref().as_str(), "us" | "netem"))
    {
        let what = "unknown emulator; write `us`, or `netem` if the kernel supports it";
        faults.add_fault(by.span(), &format!("link.{name}.by"), what);
    }
    if let Some((span, path, what)) = unknown {
        faults.add_fault(span, &path, what);
    } else if let Err(LinkSettingError { key, fault }) = LinkShape::from_settings(&get) {
        let span = find_link_setting(link, key).map_or(link.between.span(), Spanned::span);
        faults.add_fault(span, &format!("link.{name}.{key}"), fault.to_string());
    }
    for algorithm in &link.compete {
        if let Err(UnknownPlaceholder(unfilled)) =
            fill_placeholders(algorithm.get_ref(), &|name| arm.get(name).cloned())
        {
            let what = format!("{{{unfilled}}}: sweep does not define this variable");
            faults.add_fault(algorithm.span(), &format!("link.{name}.compete"), what);
        }
    }
}

fn check_commands(document: &ExperimentDocument, arm: &Arm, faults: &mut FaultCollector<'_>) {
    let functions = document.function.iter().map(|(name, function)| {
        let port = Some(*function.port.get_ref());
        ("function", name, &function.run, &function.at, port)
    });
    let sinks = document.sink.iter();
    let sinks = sinks.map(|(name, sink)| ("sink", name, &sink.run, &sink.at, None));
    for (kind, name, run, at, port) in functions.chain(sinks) {
        let place = at.as_ref().map(|at| at.get_ref().as_str());
        let known = |name: &str| {
            resolve_placeholder(
                name,
                document,
                arm,
                &RunContext::before_deployment(place, port),
            )
        };
        if let Err(UnknownPlaceholder(unfilled)) = fill_placeholders(run.get_ref(), &known) {
            let what = match document.function.contains_key(unfilled.as_str()) {
                true => format!(
                    "{{{unfilled}}}: no link connects this place to the place of that function"
                ),
                false => format!(
                    "unknown placeholder {{{unfilled}}}; define a source, function or variable of that \
                     name, or write {{{{{unfilled}}}}} for literal braces"
                ),
            };
            faults.add_fault(run.span(), &format!("{kind}.{}.run", name.get_ref()), what);
        }
    }
}
