//! The results of a task: the fields of a run's report, flat, in an order that does not change.

use crate::line::{ERROR, Line, SEED, STATUS, SWEEP, TASK};
use crate::task::Task;
use longwire_control::fits;
use longwire_report::{Report, Row, Scalar};
use longwire_run::fitted::fit_pool;
use longwire_run::port_files::PortFiles;
use longwire_run::records::RecordOptions;
use longwire_run::virtual_run::simulate;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Fields that say nothing in virtual time, or repeat the settings.
const LEFT_OUT: [&str; 6] = ["kind", "settings", "driver", "late_packets", "max_late_ns", "lateness_ns"];

/// Columns of results with their values.
pub(crate) type Results = Vec<(String, Value)>;

/// Runs `plan` in virtual time, until no event is left or for `time`, and returns the columns that fit one of
/// these patterns, or all.
///
/// # Errors
/// If it can't run, or its report fails.
pub(crate) fn of_run(mut plan: Plan, time: Option<Nanos>, patterns: &[String]) -> anyhow::Result<Results> {
    // The number of workers changes no result, and other tasks run beside this one.
    plan.engine.workers = 1;
    fit_pool(&mut plan);
    let plan = Arc::new(plan);
    let files = PortFiles::new(&plan, &[], &[])?;
    let report = simulate(&plan, &files, time, RecordOptions::default())?.report_input().0.report();
    let failures = report.extra.get("failures").and_then(Value::as_array);
    let failures: Vec<_> = failures.into_iter().flatten().filter_map(Value::as_str).collect();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("; "));
    if let Some(row) = report.rows.iter().find(|row| row.pass == Some(false)) {
        anyhow::bail!("{}: not all packets are accounted for", row.name);
    }
    let mut all = columns(&report);
    all.retain(|(column, _)| patterns.is_empty() || patterns.iter().any(|pattern| fits(column, pattern)));
    Ok(all)
}

/// The row of a task with these results.
pub(crate) fn row(task: &Task, fingerprint: &str, results: anyhow::Result<Results>) -> Line {
    let mut line = Line::default();
    line.push(TASK, task.number);
    line.push(SWEEP, fingerprint);
    for setting in &task.settings {
        line.push(&*setting.target, &*setting.value);
    }
    line.push(SEED, task.seed);
    match results {
        Ok(results) => {
            line.push(STATUS, "ok");
            line.push(ERROR, Value::Null);
            results.into_iter().for_each(|(column, value)| line.push(column, value));
        }
        Err(error) => {
            line.push(STATUS, "failed");
            line.push(ERROR, format!("{error:#}"));
        }
    }
    line
}

fn columns(report: &Report) -> Results {
    let mut all = Results::new();
    let field = |name: &str| report.extra.get(name).cloned().unwrap_or_default();
    all.push(("elapsed_ns".into(), field("elapsed_ns")));
    let flow = field("flow");
    for name in ["taken", "made", "sent", "consumed"] {
        all.push((name.into(), flow.get(name).cloned().unwrap_or_default()));
    }
    all.push(("held".into(), field("held")));
    let drops = field("dropped");
    let drops = drops.as_object();
    let sum: u64 = drops.into_iter().flat_map(Map::values).filter_map(Value::as_u64).sum();
    all.push(("dropped".into(), sum.into()));
    add_fields("dropped", drops.into_iter().flatten(), &mut all);
    report.rows.iter().for_each(|row| add_row(row, &mut all));
    all
}

/// Adds the columns of a source, link or router. Ports count the same packets again.
fn add_row(row: &Row, all: &mut Results) {
    let kind = row.extra.get("kind").and_then(Value::as_str).unwrap_or_default();
    // What the two numbers of a row are, by kind.
    let (expected, measured) = match kind {
        "source" => ("sent", "received"),
        "link" => ("", "out_bit_per_s"),
        "router" => ("in", "out"),
        _ => return,
    };
    let prefix = format!("{kind}.{}", row.name);
    for (name, value) in [(expected, &row.expected), (measured, &row.measured)] {
        if !name.is_empty() {
            all.push((format!("{prefix}.{name}"), value.as_ref().map_or(Value::Null, number)));
        }
    }
    add_fields(&prefix, row.extra.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())), all);
}

/// Adds numbers, and those of inner objects; lists are left out.
fn add_fields<'v>(prefix: &str, fields: impl Iterator<Item = (&'v String, &'v Value)>, all: &mut Results) {
    // Whatever the order of the report's fields.
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by_key(|(name, _)| *name);
    for (name, value) in fields {
        let column = format!("{prefix}.{name}");
        match value {
            Value::Object(inner) => add_fields(&column, inner.iter(), all),
            Value::Number(number) => {
                let value = whole(number.as_f64()).unwrap_or_else(|| value.clone());
                all.push((column, value));
            }
            Value::Null => all.push((column, Value::Null)),
            _ => {}
        }
    }
}

fn number(value: &Scalar) -> Value {
    match value {
        Scalar::Whole(value) => (*value).into(),
        Scalar::Real(value) => whole(Some(*value)).unwrap_or_else(|| (*value).into()),
        Scalar::Text(text) => text.as_str().into(),
    }
}

/// A number without a fraction as an integer, where floating point is exact.
fn whole(value: Option<f64>) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.filter(|value| value.fract() == 0.0 && value.abs() < EXACT).map(|value| (value as i64).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_run::comparison::StartSetting;
    use longwire_scenario::plan_of;

    const TEXT: &str = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
        address = \"10.0.0.2/24\"\n[[link]]\nname = \"up\"\nbetween = [\"a\", \"b\"]\n\
        rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"5 packets\"\n\
        [[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"2 Mbit/s\"\nsize = \"1000 B\"\n\
        for = \"1 s\"\n";

    #[test]
    fn results_are_flat_and_in_order() {
        let all = of_run(plan_of(TEXT), None, &[]).unwrap();
        let value = |column: &str| {
            let found = all.iter().find(|(known, _)| known == column);
            found.unwrap_or_else(|| panic!("no {column} in {all:?}")).1.as_u64()
        };
        // 250 packets come in a second, and half of them leave.
        assert_eq!((value("taken"), value("source.video.sent")), (Some(250), Some(250)));
        let (received, dropped) = (value("source.video.received").unwrap(), value("dropped").unwrap());
        assert_eq!(received + dropped, 250);
        assert_eq!(value("source.video.lost"), Some(dropped));
        assert_eq!(value("link.up.forward.dropped.queue-full"), Some(dropped));
        assert_eq!(value("dropped.queue-full"), Some(dropped));
        assert_eq!(value("link.up.forward.out_packets"), Some(received));
        assert_eq!(value("link.up.backward.out_packets"), Some(0));
        let (p50, most) = (value("source.video.delay_ns_p50").unwrap(), value("source.video.delay_ns_max"));
        assert!(p50 > 20_000_000 && Some(p50) <= most, "{p50}");
        let names: Vec<_> = all.iter().map(|(column, _)| column.as_str()).collect();
        assert_eq!(&names[..6], ["elapsed_ns", "taken", "made", "sent", "consumed", "held"]);
        assert!(!names.iter().any(|name| name.contains("late") || name.starts_with("port.")), "{names:?}");
        let few = of_run(plan_of(TEXT), None, &["taken".into(), "source.*.lost".into()]).unwrap();
        assert_eq!(few.len(), 2);
    }

    #[test]
    fn a_row_has_the_task_in_front() {
        let setting = StartSetting { target: "up.rate".into(), value: "1mbit".into() };
        let task = Task { number: 3, settings: vec![setting], seed: 9 };
        let line = row(&task, "f00", Err(anyhow::anyhow!("no")));
        assert_eq!(
            line.to_json(),
            "{\"task\": 3, \"sweep\": \"f00\", \"up.rate\": \"1mbit\", \"seed\": 9, \"status\": \"failed\", \
             \"error\": \"no\"}\n"
        );
        let line = row(&task, "f00", Ok(vec![("taken".into(), 5.into())]));
        assert!(line.to_json().ends_with("\"status\": \"ok\", \"error\": null, \"taken\": 5}\n"));
    }

    #[test]
    fn endless_runs_fail() {
        let error = of_run(plan_of(&TEXT.replace("for = \"1 s\"\n", "")), None, &[]).unwrap_err();
        assert!(error.to_string().contains("never ends"), "{error}");
        assert_eq!(whole(Some(2.0)), Some(2.into()));
        assert_eq!((whole(Some(2.5)), whole(Some(1e300)), whole(None)), (None, None, None));
    }
}
