//! `longwire forwarder list`: a line per program.

use super::answers::program_row;
use super::{Target, text};
use crate::{Outcome, outcome};
use longwire_control::ProgramRequest;
use longwire_report::shown::{columns, count};
use longwire_run::programs::rows::rest;
use serde_json::Value;

const HEAD: &str = "fid,packets,passed,sent,dropped,aborted,mean ns,99 %,worst,name and key";

/// Lists a router's programs.
///
/// # Errors
/// If no instance is selected, or it does not answer, or it has no such router.
pub(super) fn list(target: &Target) -> anyhow::Result<Outcome> {
    let answer = target.ask(&ProgramRequest::List)?;
    if target.of.json.on {
        return target.print_list("forwarder list", answer, "forwarders", program_row);
    }
    let mut lines = vec![HEAD.split(',').map(str::to_owned).collect()];
    for one in answer["forwarders"].as_array().into_iter().flatten().filter_map(Value::as_object) {
        let field = |key: &str| one.get(key).unwrap_or(&Value::Null);
        let number = |key: &str| field(key).as_u64().unwrap_or_default();
        lines.push(vec![
            field("fid").to_string(),
            count(number("packets")),
            count(number("passed")),
            count(number("transmitted") + number("redirected")),
            count(number("dropped")),
            count(number("aborted")),
            nanoseconds(&field("cost")["mean_ns"]),
            nanoseconds(&field("cost")["p99_ns"]),
            nanoseconds(&field("cost")["worst_case_ns"]),
            format!("{}  {}{}", text(field("name")), text(field("key")), rest(one)),
        ]);
    }
    outcome::print(&columns(&lines).join("\n"))?;
    for (resource, limit) in answer["budget"].as_object().into_iter().flatten() {
        let need = &answer["need"][resource];
        outcome::print(&format!("a packet needs at most {need} of {limit} {resource}"))?;
    }
    Ok(Outcome::Well)
}

/// Formats a time; `-` if it was not measured.
fn nanoseconds(time: &Value) -> String {
    time.as_f64().map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"))
}
