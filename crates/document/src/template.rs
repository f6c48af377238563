//! Templates in the texts of an entry with a count: `dsl{n}`, `{10.0.0.0 + n}/24`, `{n * 2} ms`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/" | "%") factor }
//! factor  = "n" | number | "(" sum ")" | "-" factor | address
//! ```
//! An address (IPv4, IPv6 or hardware) may be the first thing in the braces only; a number is added to it, or
//! taken.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{Mac, number};

/// Deepest nesting of parentheses.
const DEEPEST: u32 = 16;

/// `text` with its templates expanded for the number `n`; none if the entry has no count.
///
/// # Errors
/// The fault and its fix.
pub fn expand(text: &str, n: Option<u64>) -> Result<Cow<'_, str>, String> {
    if !text.contains(['{', '}']) {
        return Ok(Cow::Borrowed(text));
    }
    let Some(n) = n else {
        return Err(format!("\"{text}\" has braces, but there is no count; add one, such as count = 10"));
    };
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('{') {
        let Some((inside, after)) = tail.split_once('}') else {
            return Err(format!("\"{text}\" has an opening brace without a closing one"));
        };
        out.push_str(before);
        value(inside, n, &mut out).map_err(|why| format!("{{{inside}}} {why}"))?;
        rest = after;
    }
    if rest.contains('}') || out.contains('}') {
        return Err(format!("\"{text}\" has a closing brace without an opening one"));
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// Expands the inside of one pair of braces. Nothing is allocated for the usual forms: a scenario may have
/// millions.
fn value(inside: &str, n: u64, out: &mut String) -> Result<(), String> {
    if inside.trim() == "n" {
        put(n, out);
        return Ok(());
    }
    let n = i128::from(n);
    let (head, sign, tail) = match inside.find(['+', '-']) {
        Some(at) => (inside[..at].trim(), inside.as_bytes()[at], &inside[at + 1..]),
        None => (inside.trim(), b'+', "0"),
    };
    if !head.contains(['.', ':']) {
        let number = evaluate(inside, n)?;
        if number < 0 {
            return Err(format!("is {number} at n = {n}, below zero; use another first"));
        }
        put(number, out);
        return Ok(());
    }
    // The part after the first sign is one sum: a − b + c is a + (0 − b + c). Without the 0, the minus would
    // belong to the first factor, which decides how a division rounds.
    let offset = if sign == b'-' { evaluate(&format!("0-{tail}"), n) } else { evaluate(tail, n) }?;
    moved(head, offset, out).map_err(|why| format!("{why} at n = {n}"))
}

fn put(shown: impl Display, out: &mut String) {
    // Writing to a string does not fail.
    _ = write!(out, "{shown}");
}

/// Appends the address `head` plus `offset`.
fn moved(head: &str, offset: i128, out: &mut String) -> Result<(), String> {
    let past = || String::from("is past the last address, or before the first");
    if let Ok(address) = head.parse::<IpAddr>() {
        let number = number(address).checked_add_signed(offset).ok_or_else(past)?;
        match address {
            IpAddr::V4(_) => put(Ipv4Addr::from_bits(u32::try_from(number).map_err(|_| past())?), out),
            IpAddr::V6(_) => put(Ipv6Addr::from_bits(number), out),
        }
        return Ok(());
    }
    let mac: Mac =
        head.parse().map_err(|_| "does not begin with an address; write {10.0.0.0 + n}".to_string())?;
    let mut wide = [0; 8];
    wide[2..].copy_from_slice(&mac.0);
    let number =
        i128::from(u64::from_be_bytes(wide)).checked_add(offset).filter(|n| (0..1 << 48).contains(n));
    let [_, _, bytes @ ..] = (number.ok_or_else(past)? as u64).to_be_bytes();
    put(Mac(bytes), out);
    Ok(())
}

/// The value of an expression over `n`.
fn evaluate(text: &str, n: i128) -> Result<i128, String> {
    let mut parser = Parser { rest: text, n, depth: 0 };
    let sum = parser.sum()?;
    match parser.peek() {
        None => Ok(sum),
        Some(c) => Err(format!("has '{c}' where an operator belongs; use + - * / % and n")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    n: i128,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut left = self.product()?;
        while let Some(operator @ ('+' | '-')) = self.peek() {
            self.take();
            let right = self.product()?;
            let result = if operator == '+' { left.checked_add(right) } else { left.checked_sub(right) };
            left = result.ok_or("is too large a number")?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut left = self.factor()?;
        while let Some(operator @ ('*' | '/' | '%')) = self.peek() {
            self.take();
            let right = self.factor()?;
            if right == 0 && operator != '*' {
                return Err(format!("divides by zero at n = {}", self.n));
            }
            let result = match operator {
                '*' => left.checked_mul(right),
                '/' => left.checked_div_euclid(right),
                _ => left.checked_rem_euclid(right),
            };
            left = result.ok_or("is too large a number")?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<i128, String> {
        match self.peek() {
            Some('n') => {
                self.take();
                Ok(self.n)
            }
            Some('(' | '-') if self.depth == DEEPEST => Err("is nested too deeply".into()),
            Some('-') => {
                self.take();
                self.depth += 1;
                let value = self.factor()?;
                self.depth -= 1;
                value.checked_neg().ok_or_else(|| "is too large a number".into())
            }
            Some('(') => {
                self.take();
                self.depth += 1;
                let value = self.sum()?;
                self.depth -= 1;
                if self.peek() != Some(')') {
                    return Err("lacks a closing parenthesis".into());
                }
                self.take();
                Ok(value)
            }
            Some('0'..='9') => {
                let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
                let (digits, rest) = self.rest.split_at(length);
                self.rest = rest;
                digits.parse::<u64>().map(i128::from).map_err(|_| "is too large a number".into())
            }
            Some(c) => Err(format!("has '{c}' where a number belongs; use n, numbers and + - * / %")),
            None => Err("ends where a number belongs; write n, as in {n} or {n + 1}".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expands() {
        let table = [
            ("plain", 7, "plain"),
            ("dsl{n}", 7, "dsl7"),
            ("{n}-{n + 1}", 7, "7-8"),
            ("{10.0.0.0 + n}/24", 300, "10.0.1.44/24"),
            ("{10.0.0.10 - n + 2}", 5, "10.0.0.7"),
            ("{10.0.0.10 - n % 4}", 1, "10.0.0.9"),
            ("{10.0.0.10 - n / 2}", 3, "10.0.0.9"),
            ("{10.0.0.1}", 5, "10.0.0.1"),
            ("{fd00:: + n * 65536}", 2, "fd00::2:0"),
            ("{02:00:00:00:00:ff + n}", 1, "02:00:00:00:01:00"),
            ("10.{n / 250}.{n % 250 + 1}.1", 501, "10.2.2.1"),
            ("{(n + 1) * 2} ms", 4, "10 ms"),
            ("{ 100 - -n }", 1, "101"),
        ];
        for (text, n, wanted) in table {
            assert_eq!(expand(text, Some(n)).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn refuses() {
        let table = [
            ("a{n", "closing"),
            ("a}", "opening"),
            ("{}", "ends where"),
            ("{m}", "'m'"),
            ("{n n}", "operator"),
            ("{n / 0}", "zero"),
            ("{n - 9}", "below zero"),
            ("{(n}", "parenthesis"),
            ("{255.255.255.255 + n}", "past the last"),
            ("{10.0.0 + n}", "does not begin with an address"),
            ("{999999999999999999999}", "too large"),
        ];
        for (text, wanted) in table {
            let error = expand(text, Some(1)).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(expand("{n}", None).unwrap_err().contains("count"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[{}()n0-9+*/%. :a-]{0,40}", n in any::<u64>()) {
            let _ = expand(&text, Some(n));
        }
    }
}
