//! What admission prices, as a file: an item a line with its picoseconds on one machine, as `longwire calibrate` writes it.

use longwire_program::{Item, Prices};
use longwire_router::RouterPrices;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Names of what a router does besides programs.
const CLASSIFY: &str = "classify";
const FORWARD: &str = "forward";
/// No price is as high as this, in picoseconds: a thousandth of a second.
const HIGHEST: u64 = 1_000_000_000;

/// Why a text is no list of prices.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PricesError {
    /// It is not of the form `name = number`.
    #[error("line {line}: not \"item = picoseconds\"")]
    Line {
        /// Which line, from 1.
        line: usize,
    },
    /// Nothing of this name is priced.
    #[error("line {line}: \"{name}\" is nothing that is priced; calibrate again with this version")]
    Unknown {
        /// Which line, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A price that can't be.
    #[error("line {line}: a price is 0 to {HIGHEST} picoseconds")]
    Number {
        /// Which line, from 1.
        line: usize,
    },
    /// Something has no price.
    #[error("there is no price of \"{0}\"; calibrate again with this version")]
    Missing(&'static str),
}

/// What has a price, in order.
fn names() -> impl Iterator<Item = &'static str> {
    items().map(Item::name).chain([CLASSIFY, FORWARD])
}

fn items() -> impl Iterator<Item = Item> {
    Item::ALL.iter().copied().filter(|item| item.is_timed())
}

/// The prices with their names, in picoseconds.
pub fn named_prices(prices: &RouterPrices) -> impl Iterator<Item = (&'static str, u64)> {
    let items = items().map(|item| prices.items.price(item));
    names().zip(items.chain([prices.classify, prices.forward]))
}

/// Reads a list of prices. All that is priced must be there; lines that begin with `#` are read over.
///
/// # Errors
/// Names the line and what is wrong with it, or what is missing.
pub fn read_prices(text: &str) -> Result<RouterPrices, PricesError> {
    let mut found = vec![None; names().count()];
    for (line, text) in text.lines().enumerate().map(|(line, text)| (line + 1, text.trim())) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (name, number) = text.split_once('=').ok_or(PricesError::Line { line })?;
        let name = name.trim();
        let place = names().position(|known| known == name);
        let place = place.ok_or_else(|| PricesError::Unknown { line, name: name.into() })?;
        let number = number.trim().parse().ok().filter(|number| *number <= HIGHEST);
        found[place] = Some(number.ok_or(PricesError::Number { line })?);
    }
    let mut prices = RouterPrices { items: Prices::NONE, classify: 0, forward: 0 };
    for ((name, number), place) in names().zip(found).zip(0..) {
        let number = number.ok_or(PricesError::Missing(name))?;
        match items().nth(place) {
            Some(item) => prices.items = prices.items.with(item, number),
            None if name == CLASSIFY => prices.classify = number,
            None => prices.forward = number,
        }
    }
    Ok(prices)
}

/// The prices that someone means: `assumed`, `calibrated` for this machine's, or a file, whose name counts from `folder`.
///
/// # Errors
/// There is no such file, or it is no list of prices: says which, and why.
pub fn prices_of(meant: &str, folder: &Path) -> Result<RouterPrices, String> {
    /// Longest file in bytes.
    const LONGEST: u64 = 64 << 10;
    let path = match meant {
        "assumed" => return Ok(RouterPrices::default()),
        "calibrated" => {
            own_prices().ok_or("neither XDG_CONFIG_HOME nor HOME says where this machine's are")?
        }
        name => folder.join(name),
    };
    let fault = |why: String| format!("{}: {why}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(&path).map_err(|error| fault(error.to_string()))?;
    file.take(LONGEST).read_to_string(&mut text).map_err(|error| fault(error.to_string()))?;
    read_prices(&text).map_err(|error| fault(error.to_string()))
}

/// Writes a list of prices, with what is known of the machine above it.
pub fn write_prices(prices: &RouterPrices, machine: &str) -> String {
    let mut text = String::from("# Prices in picoseconds, measured by \"longwire calibrate\".\n");
    text.extend(machine.lines().map(|line| format!("# {line}\n")));
    text.extend(named_prices(prices).map(|(name, number)| format!("{name} = {number}\n")));
    text
}

/// Where the prices of this machine are: `longwire/prices` in `$XDG_CONFIG_HOME`, or in `~/.config` without that. None if there is neither.
pub fn own_prices() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("longwire").join("prices"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut prices = RouterPrices::default();
        prices.items = prices.items.with(Item::Hash, 4711);
        prices.classify = 12;
        let text = write_prices(&prices, "A machine\nof two lines");
        assert!(text.contains("\n# of two lines\n") && text.contains("\nhash = 4711\n"), "{text}");
        assert_eq!(read_prices(&text), Ok(prices));
    }

    #[test]
    fn mistakes_have_their_lines() {
        let all = write_prices(&RouterPrices::default(), "");
        let wrong = |from: &str, to: &str| read_prices(&all.replace(from, to)).unwrap_err();
        assert_eq!(wrong("classify = 30000\n", ""), PricesError::Missing("classify"));
        let line = all.lines().position(|line| line.starts_with("classify")).unwrap() + 1;
        assert_eq!(wrong("classify = 30000", "classify 30000"), PricesError::Line { line });
        assert_eq!(wrong("classify = 30000", "classify = -1"), PricesError::Number { line });
        assert_eq!(wrong("classify = 30000", "classify = 2000000000"), PricesError::Number { line });
        let name = "clasify".to_owned();
        assert_eq!(wrong("classify = 30000", "clasify = 30000"), PricesError::Unknown { line, name });
    }
}
