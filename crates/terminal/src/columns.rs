//! The columns of every table, and which of them have room.

use crate::history::Track;
use crate::text::{count, width};
use crate::theme::Mood;
use longwire_control::{Kind, Object, Sort};
use longwire_report::shown;
use serde_json::Value;

/// A row that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownRow<'a> {
    pub(crate) object: &'a Object,
    pub(crate) track: Option<&'a Track>,
    /// What its router says of it, if it is a program.
    pub(crate) program: Option<&'a Value>,
}

impl ShownRow<'_> {
    fn stat(&self, field: &str) -> Option<u64> {
        self.object.stats[field].as_u64()
    }

    fn real(&self, field: &str) -> Option<f64> {
        self.object.stats[field].as_f64()
    }

    fn setting(&self, key: &str) -> &str {
        self.object.settings.get(key).map_or("", String::as_str)
    }

    /// Dropped packets of all reasons.
    fn dropped(&self) -> u64 {
        let reasons = self.object.stats["drops"].as_array();
        reasons.into_iter().flatten().filter_map(|reason| reason[1].as_u64()).sum()
    }

    fn per_second(&self, field: &str) -> Option<f64> {
        self.track?.per_second(field)
    }
}

/// A cell: its text and what it says.
type Cell = (String, Mood);

/// A column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// By what the instance sorts.
    pub(crate) sort: Option<Sort>,
    /// Where there is no room for all, those with the highest ranks are left out.
    rank: u8,
    /// The width that its usual cells take, so that the columns stay where they are.
    usual: usize,
    pub(crate) cell: fn(&ShownRow<'_>) -> Cell,
}

const fn column(
    title: &'static str,
    (rank, usual): (u8, usize),
    sort: Option<Sort>,
    cell: fn(&ShownRow<'_>) -> Cell,
) -> Column {
    Column { title, sort, rank, usual, cell }
}

fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Mood::Plain)
}

/// What is not known yet.
fn unknown() -> Cell {
    ("-".into(), Mood::Faint)
}

/// A number that may not be known yet.
fn or_none<T>(number: Option<T>, text: fn(T) -> String) -> Cell {
    number.map_or_else(unknown, |number| plain(text(number)))
}

fn time(ns: u64) -> String {
    shown::time(ns as f64)
}

fn rate_of_bytes(bytes: f64) -> String {
    shown::rate(bytes * 8.0)
}

fn pace(packets: f64) -> String {
    count(packets.round() as u64)
}

/// How many packets were lost: zero is no news.
fn losses(packets: Option<u64>) -> Cell {
    packets.map_or_else(unknown, |lost| (count(lost), if lost == 0 { Mood::Faint } else { Mood::Warn }))
}

const NAME: Column = column("name", (0, 4), None, |seen| plain(&*seen.object.name));

/// Of links. All but the percentiles are sorted by the instance; those only this view knows.
const LINKS: &[Column] = &[
    column("link", (0, 4), Some(Sort::Name), |seen| plain(&*seen.object.name)),
    column("state", (6, 5), Some(Sort::Load), state),
    column("in", (5, 12), Some(Sort::In), |seen| or_none(seen.real("in_bit_per_s"), shown::rate)),
    column("out", (1, 12), Some(Sort::Rate), |seen| or_none(seen.real("out_bit_per_s"), shown::rate)),
    column("of", (10, 12), None, |seen| plain(seen.setting("rate"))),
    column("queue", (2, 7), Some(Sort::Queued), |seen| or_none(seen.stat("queued_packets"), count)),
    column("bytes", (13, 9), None, |seen| {
        or_none(seen.stat("queued_bytes"), |bytes| shown::bytes(bytes as f64))
    }),
    column("delay", (4, 9), Some(Sort::Delay), |seen| or_none(seen.stat("delay_ns"), time)),
    column("p50", (8, 9), None, |seen| or_none(delays(seen).map(|(median, _)| median), time)),
    column("p99", (7, 9), None, |seen| or_none(delays(seen).map(|(_, high)| high), time)),
    column("drops", (3, 7), Some(Sort::Dropped), |seen| losses(Some(seen.dropped()))),
    column("max late", (9, 9), Some(Sort::Late), |seen| or_none(seen.stat("max_late_ns"), time)),
    column("carried", (11, 9), Some(Sort::Carried), |seen| {
        or_none(seen.stat("out_bytes"), |bytes| shown::bytes(bytes as f64))
    }),
    column("on its way", (12, 10), None, |seen| or_none(seen.stat("travelling_packets"), count)),
    column("loss", (14, 6), None, |seen| plain(seen.setting("loss"))),
];

fn delays(seen: &ShownRow<'_>) -> Option<(u64, u64)> {
    seen.track?.delays()
}

/// What a link is doing, in a word.
fn state(seen: &ShownRow<'_>) -> Cell {
    if seen.object.stats["down"] == true {
        return ("down".into(), Mood::Bad);
    }
    match (seen.real("load"), seen.real("out_bit_per_s")) {
        (Some(0.97..), _) => ("full".into(), Mood::Bad),
        (Some(0.7..), _) => ("busy".into(), Mood::Warn),
        (_, Some(0.0) | None) => ("idle".into(), Mood::Faint),
        _ => ("up".into(), Mood::Good),
    }
}

const SOURCES: &[Column] = &[
    column("source", (0, 4), None, |seen| plain(&*seen.object.name)),
    column("state", (4, 5), None, |seen| plain(seen.setting("state"))),
    column("model", (5, 9), None, |seen| plain(seen.setting("model"))),
    column("sent", (1, 9), None, |seen| or_none(seen.stat("expected"), count)),
    column("received", (2, 9), None, |seen| or_none(seen.stat("measured"), count)),
    column("lost", (3, 7), None, |seen| losses(seen.stat("lost"))),
    column("offered", (6, 12), None, |seen| or_none(seen.real("offered_bit_per_s"), shown::rate)),
    column("delivered", (7, 12), None, |seen| or_none(seen.real("delivered_bit_per_s"), shown::rate)),
    column("mean delay", (8, 10), None, |seen| or_none(seen.stat("delay_ns_mean"), time)),
    column("max delay", (9, 9), None, |seen| or_none(seen.stat("delay_ns_max"), time)),
    column("reordered", (10, 9), None, |seen| or_none(seen.stat("reordered"), count)),
    column("copies", (11, 7), None, |seen| or_none(seen.stat("copies"), count)),
];

const PORTS: &[Column] = &[
    column("port", (0, 4), None, |seen| plain(&*seen.object.name)),
    column("state", (1, 5), None, port_state),
    column("in pkt/s", (4, 9), None, |seen| or_none(seen.per_second("in_frames"), pace)),
    column("in", (2, 12), None, |seen| or_none(seen.per_second("in_bytes"), rate_of_bytes)),
    column("out pkt/s", (5, 9), None, |seen| or_none(seen.per_second("out_frames"), pace)),
    column("out", (3, 12), None, |seen| or_none(seen.per_second("out_bytes"), rate_of_bytes)),
    column("outages", (7, 7), None, |seen| or_none(seen.stat("outages"), count)),
    column("down for", (8, 9), None, |seen| or_none(seen.stat("down_ns"), time)),
    column("driver", (6, 12), None, |seen| plain(seen.object.stats["driver"].as_str().unwrap_or("-"))),
];

fn port_state(seen: &ShownRow<'_>) -> Cell {
    match seen.object.stats["fault"].as_str() {
        Some(_) => ("fault".into(), Mood::Bad),
        None => ("up".into(), Mood::Good),
    }
}

const ROUTERS: &[Column] = &[
    column("router", (0, 4), None, |seen| plain(&*seen.object.name)),
    column("forwards/s", (1, 10), None, |seen| or_none(seen.per_second("forwarded"), pace)),
    column("forwarded", (4, 9), None, |seen| or_none(seen.stat("forwarded"), count)),
    column("made", (6, 9), None, |seen| or_none(seen.stat("made"), count)),
    column("for itself", (5, 10), None, |seen| or_none(seen.stat("consumed"), count)),
    column("dropped", (2, 7), None, |seen| losses(seen.stat("dropped"))),
    column("held", (7, 7), None, |seen| or_none(seen.stat("kept"), count)),
    column("cache hits", (8, 10), None, |seen| {
        or_none(seen.real("cache_hit_rate"), |share| format!("{:.1} %", share * 100.0))
    }),
    column("budget used", (3, 22), None, |seen| budget_cell(seen.program)),
];

const FLOWS: &[Column] = &[
    column("flow", (0, 4), None, |seen| plain(&*seen.object.name)),
    column("weight", (1, 6), None, |seen| plain(seen.setting("weight"))),
    column("out", (2, 12), None, |seen| or_none(seen.per_second("out_bytes"), rate_of_bytes)),
    column("processor", (3, 22), None, |seen| {
        // Nanoseconds of processor time a second.
        bar_cell(seen.per_second("processor_ns").map(|ns| ns / 1e9))
    }),
    column("inside", (4, 7), None, |seen| or_none(seen.stat("inside"), count)),
    column("refused", (5, 7), None, |seen| losses(seen.stat("refused"))),
];

const FORWARDERS: &[Column] = &[
    column("forwarder", (0, 4), None, |seen| plain(&*seen.object.name)),
    column("packets", (1, 9), None, |seen| of_program(seen, "packets")),
    column("dropped", (3, 7), None, |seen| of_program(seen, "dropped")),
    column("worst case", (4, 10), None, |seen| {
        or_none(seen.program.and_then(|program| program["cost"]["worst_case_ns"].as_f64()), shown::time)
    }),
    column("of the budget", (2, 22), None, |seen| budget_cell(seen.program)),
    column("key", (5, 12), None, |seen| {
        plain(seen.program.and_then(|program| program["key"].as_str()).unwrap_or("-"))
    }),
];

fn of_program(seen: &ShownRow<'_>, field: &str) -> Cell {
    or_none(seen.program.and_then(|program| program[field].as_u64()), count)
}

/// A bar with what is used of a packet's budget at worst.
fn budget_cell(of: Option<&Value>) -> Cell {
    bar_cell(of.and_then(|of| of["budget_share"].as_f64()))
}

/// Characters of a bar.
const BAR: usize = 10;

/// `██████░░░░ 61.2 %`
fn bar_cell(share: Option<f64>) -> Cell {
    let Some(share) = share else { return unknown() };
    let full = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    let bar = "█".repeat(full) + &"░".repeat(BAR - full);
    let mood = match share {
        0.97.. => Mood::Bad,
        0.7.. => Mood::Warn,
        _ => Mood::Good,
    };
    (format!("{bar} {:>5.1} %", share * 100.0), mood)
}

/// The columns of a table.
pub(crate) const fn of_kind(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Link => LINKS,
        Kind::Source => SOURCES,
        Kind::Medium => &[NAME],
        Kind::Port => PORTS,
        Kind::Router => ROUTERS,
        Kind::Flow => FLOWS,
        Kind::Forwarder => FORWARDERS,
    }
}

/// Widest name that columns make room for on any screen; on a wide one half of it.
const NAME_ROOM: usize = 24;
/// Columns between two.
pub(crate) const GAP: usize = 2;

/// The columns that have room, as their places among all of them, with their widths. The first, which has the
/// names, gets what the others leave; the one by which rows are sorted goes before the others.
pub(crate) fn fitting(
    columns: &[Column],
    cells: &[Vec<Cell>],
    (room, sort): (usize, Option<Sort>),
) -> Vec<(usize, usize)> {
    let own = |at: usize| {
        let widest = cells.iter().map(|row| width(&row[at].0)).max().unwrap_or(0);
        // The sorted one has a mark.
        widest.max(width(columns[at].title) + usize::from(columns[at].sort.is_some()))
    };
    let mut by_rank: Vec<usize> = (1..columns.len()).collect();
    let is_sorted = |at: usize| sort.is_some() && columns[at].sort == sort;
    by_rank.sort_by_key(|&at| (!is_sorted(at), columns[at].rank));
    let mut left = room.saturating_sub(own(0).min(NAME_ROOM.max(room / 2)));
    let mut chosen = Vec::new();
    for at in by_rank {
        let width = own(at).max(columns[at].usual);
        if width + GAP > left {
            // One of a lower rank does not jump over it: the order stays the same at every width.
            break;
        }
        left -= width + GAP;
        chosen.push((at, width));
    }
    chosen.sort_unstable();
    let others: usize = chosen.iter().map(|(_, width)| width + GAP).sum();
    let mut all = vec![(0, room.saturating_sub(others))];
    all.append(&mut chosen);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(room: usize, name: &str) -> Vec<&'static str> {
        sorted_titles((room, None), name)
    }

    fn sorted_titles(room: (usize, Option<Sort>), name: &str) -> Vec<&'static str> {
        let mut row = vec![plain("1"); LINKS.len()];
        row[0] = plain(name);
        fitting(LINKS, &[row], room).into_iter().map(|(at, _)| LINKS[at].title).collect()
    }

    #[test]
    fn columns_are_left_out_by_rank() {
        assert_eq!(titles(80, "up.forward"), ["link", "state", "in", "out", "queue", "delay", "drops"]);
        assert_eq!(titles(58, "up.forward"), ["link", "out", "queue", "delay", "drops"]);
        assert_eq!(titles(20, "a"), ["link", "out"]);
        assert_eq!(titles(400, "up.forward").len(), LINKS.len());
        // What rows are sorted by is shown.
        let sorted = sorted_titles((60, Some(Sort::Late)), "up.forward");
        assert_eq!(sorted, ["link", "out", "queue", "drops", "max late"]);
        // A long name does not take all.
        assert_eq!(titles(60, &"x".repeat(99)), ["link", "out", "queue"]);
        // It is whole where it has room.
        let mut row = vec![plain("1"); LINKS.len()];
        row[0] = plain("customer-berlin-mitte-house-1234567.forward");
        let own = row[0].0.len();
        assert!(fitting(LINKS, &[row], (2 * own, None))[0].1 >= own);
    }

    #[test]
    fn widths_fill_the_room() {
        let cells = vec![vec![plain("1"); LINKS.len()]];
        for room in 10..300 {
            let widths = fitting(LINKS, &cells, (room, None));
            let gaps = (widths.len() - 1) * GAP;
            assert_eq!(widths.iter().map(|(_, width)| width).sum::<usize>() + gaps, room);
        }
    }

    #[test]
    fn bars_show_shares() {
        assert_eq!(bar_cell(Some(0.612)), ("██████░░░░  61.2 %".into(), Mood::Good));
        assert_eq!(bar_cell(Some(1.7)), ("██████████ 170.0 %".into(), Mood::Bad));
    }
}
