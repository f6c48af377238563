//! Packets from a list.

use super::period::saturated;
use longwire_units::{Bytes, Nanos};

/// Ascending times from 0, and lengths of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packets {
    list: Box<[(Nanos, u32)]>,
    largest: u32,
}

impl Packets {
    /// A list of packets. Times are relative to the first; a time before its predecessor's is moved there.
    pub fn new(mut list: Vec<(Nanos, u32)>) -> Self {
        let first = list.first().map_or(Nanos::ZERO, |&(time, _)| time);
        let mut reached = Nanos::ZERO;
        for (time, _) in &mut list {
            reached = reached.max(time.since(first));
            *time = reached;
        }
        let largest = list.iter().map(|&(_, size)| size).max().unwrap_or(0);
        Self { list: list.into(), largest }
    }

    /// Reads `TIME SIZE, TIME SIZE, …`.
    ///
    /// # Errors
    /// Names the invalid entry.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let pair = |pair: &str| {
            let pair = pair.trim();
            // The size begins at the last number.
            let middle = pair.rfind([' ', '\t']).and_then(|end| {
                let last = pair[..end].trim_end();
                let unit_only = !pair[end..].contains(|c: char| c.is_ascii_digit());
                if unit_only { last.rfind([' ', '\t']) } else { Some(end) }
            });
            let (time, size) = pair.split_at(middle?);
            let (time, size): (Nanos, Bytes) = (time.parse().ok()?, size.parse().ok()?);
            Some((time, u32::try_from(size.0).ok().filter(|size| (1..=MOST_BYTES).contains(size))?))
        };
        let read = |text: &str| {
            pair(text)
                .ok_or_else(|| format!("\"{}\" is no time and size: write \"5 ms 1000 B\"", text.trim()))
        };
        text.split(',').map(read).collect::<Result<Vec<_>, _>>().map(Self::new)
    }

    /// The list.
    pub fn as_slice(&self) -> &[(Nanos, u32)] {
        &self.list
    }

    /// Bytes of the largest; 0 if there is none.
    pub const fn largest(&self) -> u32 {
        self.largest
    }
}

/// The longest packet.
pub(super) const MOST_BYTES: u32 = 65_549;

/// Speed relative to the list: a ratio, or as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    times: u32,
    per: u32,
}

impl Default for Speed {
    fn default() -> Self {
        Self { times: 1, per: 1 }
    }
}

impl Speed {
    /// All packets are due at once.
    pub const MAXIMUM: Self = Self { times: 1, per: 0 };

    /// A ratio of `times`/`per`; none if either is 0.
    pub fn ratio(times: u32, per: u32) -> Option<Self> {
        (times > 0 && per > 0).then_some(Self { times, per })
    }

    /// Reads `1`, `2.5`, `1/3` or `max`.
    ///
    /// # Errors
    /// Contains a valid example.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "max" {
            return Ok(Self::MAXIMUM);
        }
        let whole = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| digits)
        };
        let read = || match (text.split_once('/'), text.split_once('.')) {
            (Some((times, per)), _) => Self::ratio(whole(times.trim())?, whole(per.trim())?),
            (None, Some((units, fraction))) if fraction.len() <= 6 => {
                let per = 10u32.pow(fraction.len() as u32);
                Self::ratio(whole(units)?.checked_mul(per)?.checked_add(whole(fraction)?)?, per)
            }
            (None, None) => Self::ratio(whole(text)?, 1),
            _ => None,
        };
        read().ok_or_else(|| format!("\"{text}\" is no speed; write \"1\", \"2.5\", \"1/3\" or \"max\""))
    }

    /// Converts a time of the list to real time.
    pub(super) fn shortened(self, time: Nanos) -> Nanos {
        Nanos(saturated(u128::from(time.0) * u128::from(self.per) / u128::from(self.times)))
    }

    /// Converts a duration to the list's time; none if it covers the whole list.
    pub(super) fn lengthened(self, time: Nanos) -> Option<Nanos> {
        let product = u128::from(time.0) * u128::from(self.times);
        (self.per > 0).then(|| Nanos(saturated(product / u128::from(self.per))))
    }
}
