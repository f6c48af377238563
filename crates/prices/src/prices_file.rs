//! The file of measured prices that `longwire calibrate` writes: a name and picoseconds per line. Admission
//! of programs and `longwire check` read it.

use crate::engine_prices::{EnginePrices, Price};
use longwire_document::written::{Term, Text};
use longwire_program::{Item, Prices};
use longwire_router::RouterPrices;
use longwire_settings::{Form, Grammar, plain_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Prices of a router besides its programs.
const CLASSIFY: &str = "classify";
const FORWARD: &str = "forward";
/// Highest price in picoseconds: one millisecond.
const HIGHEST: u64 = 1_000_000_000;
/// Highest lateness in picoseconds: one second.
const LATEST: u64 = 1_000_000_000_000;
/// Name of the line with the format's version, and the current version.
const FORMAT: &str = "format";
const THIS_FORMAT: u64 = 4;

/// The measured prices of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachinePrices {
    /// Programs on routers.
    pub router: RouterPrices,
    /// The engine's stages, the blocks of links, and port drivers.
    pub engine: EnginePrices,
}

/// Why a text is not a list of prices.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PricesError {
    /// An older version wrote it, which measured less or differently.
    #[error(
        "it was written by an older version of longwire, which measured less: measure again with \"longwire \
         calibrate\""
    )]
    Old,
    /// A newer version wrote it.
    #[error(
        "it was written by a newer version of longwire: measure again with this one by \"longwire calibrate\""
    )]
    New,
    /// It is not of the form `name = number`.
    #[error("line {line}: not \"item = picoseconds\", or \"item = median least most\"")]
    Line {
        /// Which line, from 1.
        line: usize,
    },
    /// There is no price of this name.
    #[error("line {line}: \"{name}\" has no price; calibrate again with this version")]
    Unknown {
        /// Which line, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A price out of range.
    #[error(
        "line {line}: a price is 0 to {HIGHEST} picoseconds, a lateness 0 to {LATEST}, the median between \
         least and most"
    )]
    Number {
        /// Which line, from 1.
        line: usize,
    },
    /// A price is missing.
    #[error("there is no price of \"{0}\"; calibrate again with this version")]
    Missing(&'static str),
}

/// All items with a price, in order.
fn names() -> impl Iterator<Item = &'static str> {
    items().map(Item::name).chain([CLASSIFY, FORWARD])
}

fn items() -> impl Iterator<Item = Item> {
    Item::ALL.iter().copied().filter(|item| item.is_timed())
}

/// Prices in picoseconds by name.
pub fn named_prices(prices: &RouterPrices) -> impl Iterator<Item = (&'static str, u64)> {
    let items = items().map(|item| prices.items.price(item));
    names().zip(items.chain([prices.classify, prices.forward]))
}

/// Reads a list of prices. Every required price must be there; lines that begin with `#` are comments.
///
/// # Errors
/// The faulty line, or the missing price.
pub fn read_prices(text: &str) -> Result<MachinePrices, PricesError> {
    let mut found = vec![None; names().count()];
    let mut engine = EnginePrices::default();
    let mut lines = text.lines().enumerate().map(|(line, text)| (line + 1, text.trim()));
    let mut lines = lines.by_ref().filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    check_format(lines.next())?;
    for (line, text) in lines {
        let (name, numbers) = text.split_once('=').ok_or(PricesError::Line { line })?;
        let name = name.trim();
        match names().position(|known| known == name) {
            Some(place) => {
                let number = numbers.trim().parse().ok().filter(|number| *number <= HIGHEST);
                found[place] = Some(number.ok_or(PricesError::Number { line })?);
            }
            None if EnginePrices::is_name(name) => engine.set(name, read_price(name, numbers, line)?),
            None => return Err(PricesError::Unknown { line, name: name.into() }),
        }
    }
    let mut router = RouterPrices { items: Prices::NONE, classify: 0, forward: 0 };
    for ((name, number), place) in names().zip(found).zip(0..) {
        let number = number.ok_or(PricesError::Missing(name))?;
        match items().nth(place) {
            Some(item) => router.items = router.items.with(item, number),
            None if name == CLASSIFY => router.classify = number,
            None => router.forward = number,
        }
    }
    match EnginePrices::required().find(|name| !engine.is_measured(name)) {
        Some(name) => Err(PricesError::Missing(name)),
        None => Ok(MachinePrices { router, engine }),
    }
}

/// The first line is the format's version; before version 1, files began with an item.
fn check_format(first: Option<(usize, &str)>) -> Result<(), PricesError> {
    let (line, text) = first.ok_or(PricesError::Missing(FORMAT))?;
    let (name, number) = text.split_once('=').ok_or(PricesError::Line { line })?;
    if name.trim() != FORMAT {
        return Err(PricesError::Old);
    }
    match number.trim().parse::<u64>().map_err(|_| PricesError::Line { line })? {
        THIS_FORMAT => Ok(()),
        number if number < THIS_FORMAT => Err(PricesError::Old),
        _ => Err(PricesError::New),
    }
}

/// A price as median, lowest and highest.
fn read_price(name: &str, numbers: &str, line: usize) -> Result<Price, PricesError> {
    let highest = if name.starts_with("late-") { LATEST } else { HIGHEST };
    let numbers: Result<Vec<u64>, _> = numbers.split_ascii_whitespace().map(str::parse).collect();
    match numbers.map_err(|_| PricesError::Number { line })?[..] {
        [median, least, most] if least <= median && median <= most && most <= highest => {
            Ok(Price { median, least, most })
        }
        [_, _, _] => Err(PricesError::Number { line }),
        _ => Err(PricesError::Line { line }),
    }
}

const CALIBRATE: &str = "run \"longwire calibrate\"";

/// A setting of prices: a [`MachinePrices`].
pub const PRICES: Grammar = Grammar {
    wanted: "\"assumed\", \"calibrated\", or a file of prices",
    read: |text, folder| {
        let Text(name) = Text::read(text)?;
        let explained = |fault: String| {
            let is_said = fault.contains("longwire calibrate");
            let fix = if is_said { String::new() } else { format!("; {CALIBRATE}") };
            format!("{fault}{fix}, or leave it out for assumed prices")
        };
        Ok(Arc::new(prices_of(&name, folder).map_err(explained)?))
    },
    examples: &["assumed"],
    form: Some(Form { pattern: ".", numbers: false }),
};

/// Prices by name: `assumed`, `calibrated` for this machine's, or a file relative to `folder`.
///
/// # Errors
/// The file can't be read, or is not a list of prices.
pub fn prices_of(meant: &str, folder: &Path) -> Result<MachinePrices, String> {
    /// Longest file in bytes.
    const LONGEST: u64 = 64 << 10;
    let path = match meant {
        "assumed" => return Ok(MachinePrices::default()),
        "calibrated" => own_prices().ok_or(
            "neither XDG_CONFIG_HOME nor HOME is set, so the file of this machine's prices is unknown",
        )?,
        name => folder.join(name),
    };
    let fault = |why: String| format!("{}: {why}", path.display());
    let text = plain_file::text_of(&path, LONGEST).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if meant == "calibrated" => {
            format!("this machine is not calibrated: {CALIBRATE}")
        }
        _ => fault(error.to_string()),
    })?;
    read_prices(&text).map_err(|error| fault(error.to_string()))
}

/// Writes a list of prices, headed by a description of the machine.
pub fn write_prices(prices: &MachinePrices, machine: &str) -> String {
    let mut text = String::from("# Prices in picoseconds, measured by \"longwire calibrate\".\n");
    text.extend(machine.lines().map(|line| format!("# {line}\n")));
    text += &format!("{FORMAT} = {THIS_FORMAT}\n# Programs on routers.\n");
    text.extend(named_prices(&prices.router).map(|(name, number)| format!("{name} = {number}\n")));
    text += "# The engine, blocks of links, and ports: median, least and most of several runs.\n";
    let line = |(name, price): (&str, Price)| {
        let highest = if name.starts_with("late-") { LATEST } else { HIGHEST };
        let [median, least, most] = [price.median, price.least, price.most].map(|number| number.min(highest));
        format!("{name} = {median} {least} {most}\n")
    };
    text.extend(prices.engine.measured().map(line));
    text
}

/// The file of this machine's prices: `longwire/prices` in `$XDG_CONFIG_HOME`, or in `~/.config`. None if
/// neither variable is set.
pub fn own_prices() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("longwire").join("prices"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> MachinePrices {
        let mut all = MachinePrices::default();
        for name in EnginePrices::required() {
            all.engine.set(name, Price { median: 20, least: 10, most: 40 });
        }
        all
    }

    #[test]
    fn what_is_written_is_read() {
        let mut all = measured();
        all.router.items = all.router.items.with(Item::Hash, 4711);
        all.router.classify = 12;
        all.engine.set("block-queue-red-512", Price { median: 3, least: 2, most: 4 });
        let text = write_prices(&all, "A machine\nof two lines");
        assert!(
            text.contains("\n# of two lines\nformat = 4\n") && text.contains("\nhash = 4711\n"),
            "{text}"
        );
        assert!(text.contains("\nblock-queue-red-512 = 3 2 4\n") && !text.contains("tap-receive"), "{text}");
        assert_eq!(read_prices(&text), Ok(all));
    }

    #[test]
    fn mistakes_have_their_lines() {
        let all = write_prices(&measured(), "");
        let wrong = |from: &str, to: &str| read_prices(&all.replace(from, to)).unwrap_err();
        assert_eq!(wrong("classify = 30000\n", ""), PricesError::Missing("classify"));
        assert_eq!(wrong("\nturn = 20 10 40", ""), PricesError::Missing("turn"));
        let at = |name: &str| all.lines().position(|line| line.starts_with(name)).unwrap() + 1;
        let line = at("classify");
        assert_eq!(wrong("classify = 30000", "classify 30000"), PricesError::Line { line });
        assert_eq!(wrong("classify = 30000", "classify = -1"), PricesError::Number { line });
        assert_eq!(wrong("classify = 30000", "classify = 2000000000"), PricesError::Number { line });
        let name = "clasify".to_owned();
        assert_eq!(wrong("classify = 30000", "clasify = 30000"), PricesError::Unknown { line, name });
        let line = at("turn");
        assert_eq!(wrong("\nturn = 20 10 40", "\nturn = 20 10"), PricesError::Line { line });
        assert_eq!(wrong("\nturn = 20 10 40", "\nturn = 20 30 40"), PricesError::Number { line });
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_not_cut_and_a_device_not_opened() {
        let folder = std::env::temp_dir();
        let name = format!("longwire-prices-{}", std::process::id());
        let of = |comments: usize| {
            let text =
                write_prices(&measured(), "") + &"#\n".repeat(comments) + "block-queue-red-512 = 3 2 4\n";
            std::fs::write(folder.join(&name), text).unwrap();
            prices_of(&name, &folder)
        };
        let (short, long) = (of(1), of(32 << 10));
        std::fs::remove_file(folder.join(&name)).unwrap();
        assert!(short.unwrap().engine.is_measured("block-queue-red-512"));
        assert!(long.unwrap_err().contains("longer than 65536 bytes"));
        let device = prices_of("/dev/null", &folder).unwrap_err();
        assert!(device.contains("not a plain file"), "{device}");
    }

    /// Before there was a format, a file began with an item.
    #[test]
    fn files_of_other_versions_are_refused_with_the_fix() {
        let all = write_prices(&measured(), "");
        let of = |format: &str| read_prices(&all.replace("format = 4\n", format)).unwrap_err();
        assert_eq!(
            [of(""), of("format = 3\n"), of("format = 5\n")],
            [PricesError::Old, PricesError::Old, PricesError::New]
        );
        assert!(of("").to_string().contains("longwire calibrate"));
        assert_eq!(read_prices("# nothing\n"), Err(PricesError::Missing("format")));
    }
}
