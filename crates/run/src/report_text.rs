//! The report of a run (see [`run_report`](crate::run_report)) as text. It is made from the JSON's fields, so
//! that a run of another process is shown in the same way.

use crate::programs::rows;
use crate::{router_rows, verdict};
use longwire_report::shown::{self, columns};
use longwire_report::{Report, Row, Scalar};
use longwire_units::{counted, plural};
use serde_json::Value;
use std::io::{self, Write};

/// Most lines for links, for routers, for control planes, for programs, for levels, and for sources.
const MOST_LINES: usize = 24;

/// Writes the report.
///
/// # Errors
/// If it can't be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let field = |name: &str| report.extra.get(name).unwrap_or(&Value::Null);
    let elapsed = field("elapsed_ns").as_u64().unwrap_or(0);
    let (scenario, mode) = (text(field("scenario")), text(field("mode")));
    writeln!(out, "{scenario}: {} of {mode} time", shown::time(elapsed as f64))?;
    let of_kind = |kind: &str| -> Vec<&Row> {
        report.rows.iter().filter(|row| row.extra.get("kind").is_some_and(|k| k == kind)).collect()
    };
    // For a part of the rows, sums and verdict have no meaning.
    let left = report.extra.get("rows_left").and_then(Value::as_u64);
    let shown_links = of_kind("link").len() as u64;
    let all_links = if left.is_some() { shown_links } else { field("links").as_u64().unwrap_or(0) };
    print_table(out, link_lines(of_kind("link")))?;
    if all_links > MOST_LINES as u64 {
        writeln!(out, "({MOST_LINES} of {} links: those that carried most)", shown::count(all_links))?;
    }
    print_table(out, of_kind("port").into_iter().map(port_line).collect())?;
    let routers = of_kind("router");
    print_rows(&routers, "routers", router_line, out)?;
    routers.iter().take(MOST_LINES).try_for_each(|row| print_processors(row, out))?;
    print_rows(&of_kind("control-plane"), "control planes", plane_line, out)?;
    print_rows(&of_kind("program"), "programs", program_line, out)?;
    print_rows(&of_kind("level"), "levels", level_line, out)?;
    print_rows(&of_kind("source"), "sources", source_line, out)?;
    if let Some(left) = left {
        return print_left(report, left, out);
    }
    writeln!(out)?;
    of_kind("nesp").into_iter().try_for_each(|row| print_nesp(row, out))?;
    print_sums(report, out)?;
    print_verdict(field("fidelity"), mode, out)?;
    verdict::windows(field("window")).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    for row in &report.rows {
        for note in &row.notes {
            writeln!(out, "note: {}: {note}", with_kind(row))?;
        }
    }
    let failures = field("failures").as_array();
    failures.into_iter().flatten().try_for_each(|failure| writeln!(out, "failed: {}", text(failure)))
}

fn print_table(out: &mut dyn Write, lines: Vec<Vec<Cell>>) -> io::Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    let head = first.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = lines.iter().map(|line| line.iter().map(|(_, cell)| cell.clone()).collect());
    writeln!(out)?;
    let table: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    columns(&table).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Prints how many rows follow those that were requested.
fn print_left(report: &Report, left: u64, out: &mut dyn Write) -> io::Result<()> {
    match report.rows.last() {
        None => writeln!(out, "nothing fits"),
        Some(last) if left > 0 => {
            let kind = last.extra.get("kind").and_then(Value::as_str);
            let last = kind.map_or_else(|| last.name.clone(), |kind| format!("{kind}/{}", last.name));
            writeln!(out, "\n({} more: --after {last})", shown::count(left))
        }
        Some(_) => Ok(()),
    }
}

/// Prints the first of these rows as a table, and how many lines were left out.
fn print_rows(rows: &[&Row], what: &str, line: fn(&Row) -> Vec<Cell>, out: &mut dyn Write) -> io::Result<()> {
    print_table(out, rows.iter().take(MOST_LINES).map(|row| line(row)).collect())?;
    if rows.len() <= MOST_LINES {
        return Ok(());
    }
    writeln!(out, "({MOST_LINES} of {} {what}; --json has them all)", shown::count(rows.len() as u64))
}

/// A cell with the header of its column.
type Cell = (&'static str, String);

/// The links that carried most, in their original order.
fn link_lines(links: Vec<&Row>) -> Vec<Vec<Cell>> {
    let mut chosen: Vec<_> = links.into_iter().enumerate().collect();
    if chosen.len() > MOST_LINES {
        chosen.sort_by_key(|(_, row)| std::cmp::Reverse(number(row, "in_bytes")));
        chosen.truncate(MOST_LINES);
        chosen.sort_by_key(|(place, _)| *place);
    }
    let has = |counter: &str| chosen.iter().any(|(_, row)| number(row, counter) > 0);
    let [made, gone]: [Vec<&CountColumn>; 2] =
        RARE_COUNTS.map(|columns| columns.iter().filter(|(_, counter)| has(counter)).collect());
    chosen.iter().map(|(_, row)| link_line(row, &made, &gone)).collect()
}

/// A column, and the counter in it.
type CountColumn = (&'static str, &'static str);

/// What enters and leaves few links, by making, consuming and steering: columns that a table has if they are
/// not empty, so that its rows add up.
const RARE_COUNTS: [&[CountColumn]; 2] =
    [&[("made", "made_packets")], &[("consumed", "consumed_packets"), ("steered", "steered_packets")]];

fn link_line(row: &Row, made: &[&CountColumn], gone: &[&CountColumn]) -> Vec<Cell> {
    let rare = |columns: &[&CountColumn]| -> Vec<Cell> {
        columns.iter().map(|(name, counter)| (*name, count(row, counter))).collect()
    };
    let mut line = vec![("link", name(row)), ("in", count(row, "in_packets"))];
    line.extend(rare(made));
    line.push(("out", count(row, "out_packets")));
    line.extend(rare(gone));
    line.extend([
        ("queued", count(row, "queued_packets")),
        ("on its way", count(row, "travelling_packets")),
        ("rate", shown::rate(measured(row))),
        ("max late", shown::time(number(row, "max_late_ns") as f64)),
        ("dropped", drops(row.extra.get("dropped"))),
    ]);
    line
}

fn port_line(row: &Row) -> Vec<Cell> {
    let losses = ["in_pool_full", "in_missed", "in_bad", "out_full", "out_down", "out_oversize"];
    let lost: Vec<_> = losses.iter().filter(|name| number(row, name) > 0).collect();
    let lost: Vec<_> = lost.iter().map(|name| format!("{} {name}", count(row, name))).collect();
    vec![
        ("port", name(row)),
        ("in", count(row, "in_frames")),
        ("out", count(row, "out_frames")),
        ("lost", if lost.is_empty() { "-".into() } else { lost.join(", ") }),
        ("driver", text(row.extra.get("driver").unwrap_or(&Value::Null)).into()),
    ]
}

fn router_line(row: &Row) -> Vec<Cell> {
    let hits = row.extra.get("cache_hit_rate").and_then(Value::as_f64);
    vec![
        ("router", name(row)),
        ("received", count(row, "received")),
        ("made", count(row, "made")),
        ("forwarded", count(row, "forwarded")),
        ("for itself", count(row, "consumed")),
        ("dropped", count(row, "dropped")),
        ("held", count(row, "kept")),
        ("cache hits", hits.map_or("-".into(), router_rows::percent)),
        ("neighbours", count(row, "neighbours")),
        ("exceptions", drops(row.extra.get("exceptions"))),
        ("policed", drops(row.extra.get("policed"))),
    ]
}

fn plane_line(row: &Row) -> Vec<Cell> {
    let counters = ["routes", "neighbours", "changes", "refused", "overflows"];
    let counted = counters.map(|counter| (counter, count(row, counter)));
    std::iter::once(("control plane", name(row))).chain(counted).collect()
}

fn program_line(row: &Row) -> Vec<Cell> {
    let key = row.extra.get("key").map_or("", text);
    vec![
        ("program", name(row)),
        ("packets", count(row, "packets")),
        ("passed", count(row, "passed")),
        ("sent back", count(row, "transmitted")),
        ("redirected", count(row, "redirected")),
        ("dropped", count(row, "dropped")),
        ("aborted", count(row, "aborted")),
        ("marked", count(row, "marked")),
        ("key", format!("{key}{}", rows::rest(&row.extra))),
    ]
}

/// Prints the flows that share a router's processors.
fn print_processors(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let Some(processors) = row.extra.get("processors").filter(|processors| processors.is_object()) else {
        return Ok(());
    };
    let flows = processors["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let all = processors["all"]["processor_ns"].as_u64().unwrap_or(0);
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
    let lines = flows.iter().take(MOST_LINES).map(|flow| {
        let count = |name: &str| shown::count(number(flow, name));
        let time = number(flow, "processor_ns");
        let share = if all == 0 { 0.0 } else { time as f64 / all as f64 };
        vec![
            ("flow", text(&flow["flow"]).to_owned()),
            ("to", flow["port"].as_str().unwrap_or("-").to_owned()),
            ("weight", count("weight")),
            ("in", count("in_packets")),
            ("refused", count("refused")),
            ("out", count("out_packets")),
            ("ended", count("consumed")),
            ("stopped", count("abandoned")),
            ("inside", count("inside")),
            ("processor time", shown::time(time as f64)),
            ("of all", router_rows::percent(share)),
        ]
    });
    let (scheduler, count) = (text(&processors["scheduler"]), number(processors, "processors"));
    let kind = if processors["measured"] == true { "measured" } else { "as in the model" };
    writeln!(out)?;
    writeln!(out, "{}: {scheduler}, {}, costs {kind}", name(row), counted(count, "processor"))?;
    print_table(out, lines.collect())?;
    let told = flows.len() as u64;
    let all_flows = told + number(processors, "flows_left_out");
    if all_flows > MOST_LINES as u64 {
        let all_flows = shown::count(all_flows);
        writeln!(out, "({MOST_LINES} of {all_flows} flows; --json has {})", shown::count(told))?;
    }
    let no_room = match &processors["scheduler"] == "fifo" {
        true => "because there was no room left for packets (packets)",
        false => "because their flow had its share of the room for packets (packets)",
    };
    let refused = [
        (
            "because the ring before the scheduler was full (rings.input); they are no flow's above",
            number(processors, "input_full"),
        ),
        ("because their flow had as many waiting as it may (flow-limit)", number(processors, "queue_full")),
        (
            "because the flow table was full of busy flows (flow-table); they are no flow's above",
            number(processors, "table_full"),
        ),
        (no_room, number(processors, "no_room")),
    ];
    for (why, count) in refused.iter().filter(|(_, count)| *count > 0) {
        writeln!(out, "{} refused {why}", shown::count(*count))?;
    }
    match number(processors, "recycled") {
        0 => Ok(()),
        1 => writeln!(out, "1 idle flow made room for another (flow-table): it is not among those above"),
        many => writeln!(
            out,
            "{} idle flows made room for others (flow-table): they are not among those above",
            shown::count(many)
        ),
    }
}

fn level_line(row: &Row) -> Vec<Cell> {
    let there = row.extra.get("there") == Some(&Value::Bool(true));
    let last_cut = row.extra.get("last_cut").map_or("-", text);
    vec![
        ("level", name(row)),
        ("there", if there { "yes" } else { "no" }.into()),
        ("up", count(row, "up")),
        ("answered", count(row, "verdicts")),
        ("late", count(row, "late")),
        ("returned", count(row, "returned")),
        ("refused", count(row, "refused")),
        ("made", count(row, "made")),
        ("faults", count(row, "faults")),
        ("cut off", count(row, "cut")),
        ("why", last_cut.into()),
    ]
}

fn source_line(row: &Row) -> Vec<Cell> {
    let value = |name: &str| row.extra.get(name).and_then(Value::as_f64);
    let time = |name: &str| value(name).map_or("-".into(), shown::time);
    let rate = |name: &str| value(name).map_or("-".into(), shown::rate);
    // Arrivals elsewhere are unknown here.
    let known = |name: &str| if row.extra.contains_key(name) { count(row, name) } else { "-".into() };
    vec![
        ("source", name(row)),
        ("sent", whole(row.expected.as_ref())),
        ("received", whole(row.measured.as_ref())),
        ("lost", known("lost")),
        ("copies", known("copies")),
        ("corrupt", known("corrupt")),
        ("offered", rate("offered_bit_per_s")),
        ("delivered", rate("delivered_bit_per_s")),
        ("least delay", time("delay_ns_min")),
        ("mean", time("delay_ns_mean")),
        ("most", time("delay_ns_max")),
    ]
}

/// Prints counters of NESP, answered and unanswered messages.
fn print_nesp(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let refused = ["bad_authenticator", "replayed", "unknown_session", "malformed", "rate_limited"];
    let refused = refused.into_iter().filter(|name| number(row, name) > 0);
    let refused: Vec<_> = refused.map(|name| format!("{} {name}", count(row, name))).collect();
    writeln!(
        out,
        "nesp: {} hellos, {} requests, {} answered again; not answered: {}",
        count(row, "hellos"),
        shown::count(measured(row) as u64),
        count(row, "repeated"),
        if refused.is_empty() { "-".into() } else { refused.join(", ") },
    )
}

fn print_sums(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let in_flow = |name: &str| {
        let value = report.extra.get("flow").and_then(|flow| flow.get(name)).and_then(Value::as_u64);
        value.unwrap_or(0)
    };
    let flow = |name: &str| shown::count(in_flow(name));
    let consumed = in_flow("consumed");
    let sum = |name: &str| report.extra.get(name).and_then(Value::as_u64).unwrap_or(0);
    let if_any = |name: &str, what: &str| match sum(name) {
        0 => String::new(),
        packets => format!(", {} {what} by links", shown::count(packets)),
    };
    let conserved = report.row("packets accounted for").and_then(|row| row.pass) == Some(true);
    writeln!(
        out,
        "packets: {} in, {} copied{}; {} out{}{}, {} held, dropped: {}; {}",
        flow("taken"),
        flow("made"),
        if_any("made_by_links", "made"),
        flow("sent"),
        if_any("consumed_by_links", "consumed"),
        if consumed == 0 { String::new() } else { format!(", {} for routers", shown::count(consumed)) },
        shown::count(sum("held") + in_flow("kept")),
        drops(report.extra.get("dropped")),
        if conserved { "all accounted for" } else { "NOT all accounted for" },
    )
}

fn print_verdict(fidelity: &Value, mode: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(faithful) = fidelity.get("faithful").and_then(Value::as_bool) else { return Ok(()) };
    let verdict = if faithful { "faithful" } else { "NOT faithful" };
    let time = |name: &str| shown::time(fidelity["lateness_ns"][name].as_f64().unwrap_or(0.0));
    // In virtual time only a tick makes packets late.
    if mode == "virtual" && fidelity["lateness_ns"]["max"].as_u64().unwrap_or(0) == 0 {
        writeln!(out, "{verdict}: in virtual time every packet leaves at its time")?;
    } else {
        let number = |key: &str| fidelity[key].as_u64().unwrap_or(0);
        writeln!(
            out,
            "{verdict}: {} {}, late by {} (median), {} (99 %), {} (at most); {} of the machine",
            shown::count(number("packets")),
            plural(number("packets"), "packet"),
            time("p50"),
            time("p99"),
            time("max"),
            counted(number("pauses"), "pause"),
        )?;
    }
    let causes = fidelity.get("causes").and_then(Value::as_array);
    causes.into_iter().flatten().try_for_each(|cause| writeln!(out, "  because {}", text(cause)))
}

fn name(row: &Row) -> String {
    row.name.clone()
}

/// A row's name with its kind: `link up`.
fn with_kind(row: &Row) -> String {
    match row.extra.get("kind").and_then(Value::as_str) {
        Some(kind) if kind != row.name => format!("{} {}", kind.replace('-', " "), row.name),
        _ => row.name.clone(),
    }
}

fn number(row: &Row, name: &str) -> u64 {
    row.extra.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn count(row: &Row, name: &str) -> String {
    shown::count(number(row, name))
}

/// A number of packets, or what is known instead of it.
fn whole(number: Option<&Scalar>) -> String {
    match number {
        Some(Scalar::Whole(number @ 0..)) => shown::count(number.unsigned_abs()),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn measured(row: &Row) -> f64 {
    row.measured.as_ref().and_then(Scalar::as_f64).unwrap_or(0.0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Formats drops by reason: `12 loss, 3 queue-full`, or `-`.
fn drops(by_reason: Option<&Value>) -> String {
    let each = by_reason.and_then(Value::as_object).into_iter().flatten();
    let each: Vec<_> = each
        .map(|(reason, packets)| format!("{} {reason}", shown::count(packets.as_u64().unwrap_or(0))))
        .collect();
    if each.is_empty() { "-".into() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut report = Report::new("run");
        let kinds = [("router", 25), ("program", 26), ("level", 27), ("control-plane", 28), ("source", 24)];
        for (kind, all) in kinds {
            report.extend((0..all).map(|number| Row::new(format!("{kind}{number}"), "").extra("kind", kind)));
        }
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let all = ["25 routers;", "26 programs;", "27 levels;", "28 control planes;"];
        for left_out in all.map(|all| format!("(24 of {all}")) {
            assert!(text.contains(&left_out), "{left_out} {text}");
        }
        assert!(!text.contains("sources;"), "{text}");
    }

    /// The text of a report with these rows, with each run of spaces as one.
    fn text_of(rows: Vec<Row>) -> String {
        let mut report = Report::new("run");
        report.extend(rows);
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let words = |line: &str| -> Vec<String> {
            line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        text.lines().map(|line| words(line).join(" ") + "\n").collect()
    }

    #[test]
    fn rows_of_links_add_up() {
        let link = |name: &str, counters: &[(&str, u64)]| {
            let row = Row::new(name, "bit/s").extra("kind", "link");
            counters.iter().fold(row, |row, (counter, packets)| row.extra(*counter, *packets))
        };
        let plain = || link("plain", &[("in_packets", 5), ("out_packets", 5)]);
        let steers = link("steers", &[("in_packets", 9), ("out_packets", 2), ("steered_packets", 7)]);
        let copies = link("copies", &[("in_packets", 4), ("made_packets", 2), ("out_packets", 6)]);
        assert!(text_of(vec![plain()]).contains("\nlink in out queued on its way rate"));
        let text = text_of(vec![plain(), steers]);
        assert!(text.contains("\nlink in out steered queued on"), "{text}");
        assert!(text.contains("\nplain 5 5 0 0") && text.contains("\nsteers 9 2 7 0"), "{text}");
        let text = text_of(vec![copies, plain()]);
        assert!(text.contains("\nlink in made out queued on"), "{text}");
        assert!(text.contains("\ncopies 4 2 6 0") && text.contains("\nplain 5 0 5 0"), "{text}");
    }

    #[test]
    fn control_planes_have_a_table_with_what_was_refused() {
        let plane = Row::new("west", "routes").measured(17).extra("kind", "control-plane");
        let counters = [("routes", 17), ("neighbours", 5), ("changes", 31), ("refused", 2), ("overflows", 1)];
        let plane = counters.into_iter().fold(plane, |row, (counter, count)| row.extra(counter, count));
        let text = text_of(vec![plane]);
        let table = "\ncontrol plane routes neighbours changes refused overflows\nwest 17 5 31 2 1\n";
        assert!(text.contains(table), "{text}");
    }

    #[test]
    fn numbers_of_a_row_are_written_alike() {
        let source = Row::new("s", "").extra("kind", "source").expected(16_667).measured(10_262);
        let text = text_of(vec![source.extra("lost", 6_405)]);
        assert!(text.contains("\ns 16\u{a0}667 10\u{a0}262 6\u{a0}405 "), "{text}");
    }
}
