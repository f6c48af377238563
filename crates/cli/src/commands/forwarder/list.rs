//! `longwire forwarder list`: a line a program.

use super::{List, ask, text};
use crate::shown::{columns, count};
use crate::{Outcome, outcome};
use longwire_control::ForwarderAsk;
use serde_json::Value;

/// Lists a router's programs.
///
/// # Errors
/// If no instance is meant, or it does not answer, or it has no such router.
pub(super) fn list(args: &List) -> anyhow::Result<Outcome> {
    let answer = ask(args.instance.as_deref(), &args.router, &ForwarderAsk::List {})?;
    if args.json {
        outcome::print(&serde_json::to_string_pretty(&answer)?)?;
        return Ok(Outcome::Well);
    }
    let head = ["fid", "packets", "passed", "sent", "dropped", "aborted", "name and key"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for one in answer["forwarders"].as_array().into_iter().flatten() {
        let number = |key: &str| one[key].as_u64().unwrap_or_default();
        lines.push(vec![
            one["fid"].to_string(),
            count(number("packets")),
            count(number("passed")),
            count(number("transmitted") + number("redirected")),
            count(number("dropped")),
            count(number("aborted")),
            format!("{}  {}{}", text(&one["name"]), text(&one["key"]), rest(one)),
        ]);
    }
    outcome::print(&columns(&lines).join("\n"))?;
    for (resource, limit) in answer["budget"].as_object().into_iter().flatten() {
        let need = &answer["need"][resource];
        outcome::print(&format!("a packet needs at most {need} of {limit} {resource}"))?;
    }
    Ok(Outcome::Well)
}

/// Which constants a program has, where packets go that it lets pass, and how long it is there, as far as that is said.
fn rest(one: &Value) -> String {
    let mut rest = String::new();
    let mut add = |part: String| rest += &format!("  {part}");
    for (name, numbers) in one["constants"].as_object().into_iter().flatten() {
        let numbers: Vec<String> = match numbers.as_array() {
            Some(several) => several.iter().map(Value::to_string).collect(),
            None => vec![numbers.to_string()],
        };
        add(format!("{name}={}", numbers.join(",")));
    }
    match one["where"].as_str() {
        None | Some("data-path") => {}
        Some(level) => add(format!("up to {level}")),
    }
    if let Some(port) = one["port"].as_str() {
        add(format!("out of {port}"));
    }
    if let Some(via) = one["via"].as_str() {
        add(format!("via {via}"));
    }
    if let Some(queue) = one["queue"].as_u64() {
        add(format!("queue {queue}"));
    }
    let links: Vec<&str> = one["links"].as_array().into_iter().flatten().map(text).collect();
    if !links.is_empty() {
        add(format!("links {}", links.join(", ")));
    }
    if let (Some(length), Some(left)) = (one["lease-ns"].as_u64(), one["lease-left-ns"].as_u64()) {
        let seconds = |nanos: u64| nanos.div_ceil(1_000_000_000);
        add(format!("lease of {} s, {} s left", seconds(length), seconds(left)));
    }
    rest
}

