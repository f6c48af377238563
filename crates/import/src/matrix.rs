//! Matrices of delays between regions, as CSV: a row and a column for each, or a line for each pair; or a
//! line for each region with its coordinates.
//!
//! Each pair becomes a link between two hosts. Published matrices have round trips, of which each direction
//! takes half; a first cell that says "one-way" means that values are delays of one direction.

use super::places::{Columns, Place};
use super::quantity::{LONGEST_DELAY, time};
use super::sheet::{Host, Link, Sheet, Taken};
use super::stage::Stage;
use super::{ImportError, Notes, Result};
use longwire_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Most regions: the links between them grow with the square.
const MOST_REGIONS: usize = 250;
/// Longest name of a region, so that those of links hold two.
const LONGEST_NAME: usize = 26;

/// Delays by the numbers of the two regions, from the first to the second.
type Delays = BTreeMap<(usize, usize), Nanos>;

/// The scenario of a matrix.
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet> {
    let rows = rows(text);
    let fix = "write a line of region names, and a line of milliseconds for each region";
    let nothing = || ImportError::new(0, "there is no matrix in it", fix);
    let ((line, head), rows) = rows.split_first().ok_or_else(nothing)?;
    if let Some(columns) = Columns::of(*line, head)? {
        return places(columns, rows, notes);
    }
    let one_direction = head.iter().any(|cell| is_one_way(cell));
    let mut regions = Regions::default();
    let delays = if is_list(head, rows) {
        list(rows, &mut regions, notes)?
    } else {
        table((*line, head), rows, &mut regions, notes)?
    };
    let fix = "write milliseconds where the row of one region meets the column of another";
    let has_some = regions.names.len() > 1 && !delays.is_empty();
    ImportError::unless(has_some, *line, "there is no delay between two regions in it", fix)?;
    if !one_direction {
        let why = "values are read as round trips, and each direction takes half; write \"one-way\" into the \
            first cell if they are not";
        notes.add(0, "round trips", why);
    }
    Ok(sheet(&regions, &delays, if one_direction { 1 } else { 2 }))
}

/// The scenario of regions with coordinates.
fn places(columns: Columns, rows: &[(usize, Vec<String>)], notes: &mut Notes) -> Result<Sheet> {
    let mut regions = Regions::default();
    let mut places: Vec<Place> = Vec::new();
    for (line, cells) in rows {
        let place = columns.place(*line, cells)?;
        let is_new = regions.number(place.line, &place.name)? == places.len();
        let what = format!("\"{}\" is there twice", place.name);
        ImportError::unless(is_new, *line, what, "give each place a name of its own")?;
        places.push(place);
    }
    let fix = "write a name, a latitude and a longitude on each line";
    ImportError::unless(places.len() > 1, 0, "there are no two places in it", fix)?;
    if columns.is_straight() {
        let why = "delays are those of a fibre along the great circle, and real routes are longer; write \
            \"detour 1.5\" as a further cell of the first line";
        notes.add(0, "coordinates", why);
    }
    let mut delays = Delays::new();
    for (from, one) in places.iter().enumerate() {
        for (to, other) in places.iter().enumerate().skip(from + 1) {
            delays.insert((from, to), columns.delay(one, other));
        }
    }
    Ok(sheet(&regions, &delays, 1))
}

/// The rows that are not empty, with their lines.
fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let full = lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    // Between the head and the body of a table in Markdown there is a line of dashes.
    let full = full.filter(|(_, line)| !line.chars().all(|c| "|-: ".contains(c)));
    let mut separator = None;
    full.map(|(at, line)| {
        // The first of these that the first line has.
        let found = || ['\t', ';', '|', ','].into_iter().find(|&separator| line.contains(separator));
        let separator = *separator.get_or_insert_with(|| found().unwrap_or(','));
        (at + 1, cells(line, separator))
    })
    .collect()
}

/// The cells of a line, without quotation marks (RFC 4180) and spaces around them.
fn cells(line: &str, separator: char) -> Vec<String> {
    let line = line.trim_matches(['\r', '\n']);
    let line = match separator {
        '|' => {
            let line = line.trim();
            let line = line.strip_prefix('|').unwrap_or(line);
            line.strip_suffix('|').unwrap_or(line)
        }
        _ => line,
    };
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn is_one_way(cell: &str) -> bool {
    let cell = cell.to_lowercase();
    ["one-way", "one way", "oneway"].iter().any(|words| cell.contains(words))
}

/// Whether each line is a pair: two names, and a delay or no value. A line of a table may have two cells with
/// no value, so that such a cell is only a name if another line begins with it.
fn is_list(head: &[String], rows: &[(usize, Vec<String>)]) -> bool {
    let first: BTreeSet<&str> = rows.iter().map(|(_, row)| &*row[0]).collect();
    let is_name = |cell: &str| !is_nothing(cell) || (!cell.is_empty() && first.contains(cell));
    let has_delay = |row: &[String]| row.len() >= 3 && is_delay(&row[2]);
    let pair = |row: &[String]| {
        let is_pair = row.len() >= 3 && !is_delay(&row[0]) && !is_delay(&row[1]) && !row[1].is_empty();
        is_pair && (is_delay(&row[2]) || (is_nothing(&row[2]) && is_name(&row[1])))
    };
    let any_delay = rows.iter().any(|(_, row)| has_delay(row));
    head.len() >= 3 && any_delay && rows.iter().all(|(_, row)| pair(row)) && !names_rows(head, rows)
}

/// Whether the head names the regions of the rows, as a table does.
fn names_rows(head: &[String], rows: &[(usize, Vec<String>)]) -> bool {
    let names: BTreeSet<&String> = head[1..].iter().collect();
    rows.iter().all(|(_, row)| names.contains(&row[0]))
}

fn is_delay(cell: &str) -> bool {
    milliseconds(cell).is_some()
}

/// A delay, in milliseconds unless it has another unit.
fn milliseconds(cell: &str) -> Option<Nanos> {
    time(&cell.replace(' ', ""), 1_000_000)
}

/// Whether a cell means no value.
fn is_nothing(cell: &str) -> bool {
    ["", "-", "–", "—", "n/a", "na", "nan", "null", "none", "x", "*"].contains(&&*cell.to_lowercase())
}

/// The regions, in the order in which they are named first.
#[derive(Default)]
struct Regions {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Regions {
    fn number(&mut self, line: usize, name: &str) -> Result<usize> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        ImportError::if_above(self.names.len() + 1, MOST_REGIONS, line, "regions", "leave some out")?;
        self.numbers.insert(name.into(), self.names.len());
        self.names.push(name.into());
        Ok(self.names.len() - 1)
    }
}

/// The delays of a list of pairs.
fn list(rows: &[(usize, Vec<String>)], regions: &mut Regions, notes: &mut Notes) -> Result<Delays> {
    let mut delays = Delays::new();
    for (line, row) in rows {
        let (from, to) = (regions.number(*line, &row[0])?, regions.number(*line, &row[1])?);
        put(&mut delays, (*line, &row[2]), (from, to), notes)?;
    }
    Ok(delays)
}

/// The delays of a table.
fn table(
    (line, head): (usize, &[String]),
    rows: &[(usize, Vec<String>)],
    regions: &mut Regions,
    notes: &mut Notes,
) -> Result<Delays> {
    let mut columns = Vec::new();
    for name in &head[1..] {
        columns.push(if name.is_empty() { None } else { Some(regions.number(line, name)?) });
    }
    let mut delays = Delays::new();
    for (line, row) in rows {
        let Some((name, cells)) = row.split_first() else { continue };
        if name.is_empty() {
            notes.add(*line, &row.join(","), "the row has no name, and is left out");
            continue;
        }
        let from = regions.number(*line, name)?;
        for (cell, to) in cells.iter().zip(&columns) {
            if let Some(to) = to {
                put(&mut delays, (*line, cell), (from, *to), notes)?;
            }
        }
        if cells.len() > columns.len() {
            notes.add(*line, name, "the row is longer than the first line; the excess is left out");
        }
    }
    Ok(delays)
}

/// Adds a delay. That of a region to itself is not needed.
fn put(
    delays: &mut Delays,
    (line, cell): (usize, &str),
    (from, to): (usize, usize),
    notes: &mut Notes,
) -> Result<()> {
    if from == to || is_nothing(cell) {
        return Ok(());
    }
    let Some(delay) = milliseconds(cell).filter(|delay| *delay <= LONGEST_DELAY) else {
        let what = format!("\"{cell}\" is not a delay from 0 to 100 s");
        return Err(ImportError::new(line, what, "write milliseconds, such as 12.5, or - for no link"));
    };
    if delays.insert((from, to), delay).is_some_and(|before| before != delay) {
        notes.add(line, cell, "the pair has two values; the last is taken");
    }
    Ok(())
}

/// A host for each region, and a link for each pair. A direction without a value takes that of the other.
fn sheet(regions: &Regions, delays: &Delays, parts: u64) -> Sheet {
    let mut sheet = Sheet::new("Regions, and the delays between them.");
    let (mut taken, mut taken_by_links) = (Taken::default(), Taken::default());
    let names = regions.names.iter().map(|name| taken.fresh_cleaned(name, LONGEST_NAME));
    let names: Vec<String> = names.collect();
    let linked: BTreeSet<usize> = delays.keys().flat_map(|&(from, to)| [from, to]).collect();
    for &region in &linked {
        let address = format!("10.0.0.{}/24", region + 1);
        sheet.hosts.push(Host { name: names[region].clone(), address, bridge: None });
    }
    let pairs: BTreeSet<(usize, usize)> =
        delays.keys().map(|&(from, to)| (from.min(to), from.max(to))).collect();
    for (one, other) in pairs {
        let delay = |from, to| delays.get(&(from, to)).or_else(|| delays.get(&(to, from)));
        let stage = |from, to| {
            let mut stage = Stage::default();
            let delay = delay(from, to).map_or(Nanos::ZERO, |delay| Nanos(delay.0 / parts));
            stage.set("delay", &delay.to_string());
            stage
        };
        let name = taken_by_links.fresh_cleaned(&format!("{}--{}", names[one], names[other]), 62);
        let (there, back) = (stage(one, other), stage(other, one));
        sheet.links.push(Link::duplex(name, &names[one], &names[other], there, back));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<(String, String)> {
        let sheet = import(text, &mut Notes::default()).unwrap();
        let plan = longwire_scenario::plan_of(&sheet.text(&[]));
        assert!(plan.notes.is_empty(), "{}", plan.notes[0]);
        let settings = |link: &Link| {
            let all = [&link.stage, &link.forward, &link.backward].map(|stage| &stage.settings);
            all.into_iter().flatten().map(|(_, value)| value.trim_matches('"')).collect::<Vec<_>>().join(" ")
        };
        sheet.links.iter().map(|link| (link.name.clone(), settings(link))).collect()
    }

    fn pair(name: &str, delay: &str) -> (String, String) {
        (name.into(), delay.into())
    }

    #[test]
    fn tables_of_any_shape_are_read() {
        let wanted = [pair("a--b", "5 ms"), pair("a--c", "10 ms 11 ms"), pair("b--c", "1.25 ms")];
        for text in [
            "RTT ms,a,b,c\na,0,10,20\nb,10,0,2.5\nc,22,2.5,0\n",
            "\u{feff};a;b;c\r\na;;10 ms;20 ms\r\nb;-;;2500us\r\nc;22ms;n/a;\r\n",
            "| to | a | b | c |\n|---|--:|---|---|\n| a | 0 | 10 | 20 |\n| b | 10 | | 2.5 |\n| c | 22 |\n",
            "| to | a | b | c\n|---|--:|---|---\n| a | 0 | 10 | 20\n| b | 10 | | 2.5\n| c | 22\n",
            "from,to,ms\na,b,10\na,c,20\nc,a,22\nb,c,2.5\n",
            "from,to,ms\na,b,10\nb,a,n/a\na,c,20\nc,a,22\nc,b,\nb,c,2.5\nb,d,-\n",
            "# source\n\"region\"\t\"a\"\t\"b\"\t\"c\"\n\"a\"\t\t10\t20\n\"b\"\t\t\t2.5\n\"c\"\t22\n",
        ] {
            assert_eq!(links(text), wanted, "{text}");
        }
        assert_eq!(links("one-way,a,b\na,0,10\nb,12,0\n"), [pair("a--b", "10 ms 12 ms")]);
        // Regions may be called as cells without a value, and a table may have a row without values.
        let list = links("from,to,ms\nz,x,n/a\nx,y,10\ny,z,5\n");
        assert_eq!(list, [pair("z--y", "2.5 ms"), pair("x--y", "5 ms")]);
        assert_eq!(links("ms,c,d\na,-,10\nb,-,-\n"), [pair("d--a", "5 ms")]);
    }

    #[test]
    fn coordinates_become_delays() {
        let text =
            "name,latitude,longitude\nlondon,51.5074,-0.1278\nnew york,40.7128,-74.006\nparis,48.86,2.35\n";
        let found = links(text);
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["london--new-york", "london--paris", "new-york--paris"]);
        // 5570 km · 1.468 / 299 792 km/s.
        assert!(found[0].1.starts_with("27.27"), "{}", found[0].1);
        assert_eq!(links(&text.replace("latitude,longitude", "Lat,Long")), found);
        let doubled = links(&text.replacen("longitude", "longitude,Detour 2", 1));
        assert!(doubled[0].1.starts_with("54.55"), "{}", doubled[0].1);
        for (text, what) in [
            ("name,lat,lon\na,1,2\na,3,4\n", "line 3: \"a\" is there twice"),
            ("name,lat,lon\na,1,2\n", "no two places"),
            ("name,lat,lon\na,1,x\n", "line 2: \"x\" is no coordinate"),
        ] {
            let error = import(text, &mut Notes::default()).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn names_stay_different_and_short() {
        let long = "Region with a very long name in the North (1)";
        let text = format!("ms,{long},{long}2\n{long},0,1\n");
        let names: Vec<_> = links(&text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Region-with-a-very-long-na--Region-with-a-very-long-na-2"]);
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, what) in [
            ("", "no matrix"),
            ("x,a,b\na,0,fast\n", "line 2: \"fast\" is not a delay"),
            ("x,a,b\na,0,-5\n", "line 2: \"-5\" is not a delay"),
            ("x,a,b\na,0,100001\n", "line 2: \"100001\" is not a delay"),
            ("x,a,b\na,0,-\n", "no delay between two regions"),
        ] {
            let error = import(text, &mut Notes::default()).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        let many: String = (0..300).map(|number| format!(",r{number}")).collect();
        let error = import(&many, &mut Notes::default()).unwrap_err();
        assert!(error.to_string().contains("more than 250 regions"), "{error}");
    }
}
