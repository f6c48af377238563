//! The grammar of pcap-filter(7): terms joined by `and` and `or`, which bind equally and from the left.

mod arithmetic;
mod qualified;
mod value;

use crate::builder::{Block, Builder, MAX_TESTS};
use crate::error::{ExpressionError, Fault, quoted};
use crate::names::{CONSTANTS, PROTOCOLS, REFUSED, WORDS, named, nearest};
use crate::primitive::{Primitives, Protocol};
use crate::program::Program;
use crate::token::{Token, column, tokens};
use qualified::Qualifiers;

/// Deepest nesting of parentheses and brackets.
pub(crate) const MAX_DEPTH: usize = 64;

type Result<T> = std::result::Result<T, ExpressionError>;

/// Compiles an expression.
pub(crate) fn program(text: &str) -> Result<Program> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(Program::default());
    }
    let mut parser =
        Parser { text, tokens: &tokens, next: 0, depth: 0, made: Primitives::new(), repeated: None };
    let block = parser.expression()?;
    if parser.peek().is_some() {
        return Err(parser.unexpected("join primitives with \"and\" or \"or\""));
    }
    Ok(parser.made.builder.finish(&block))
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    /// Number of the next token.
    next: usize,
    depth: usize,
    made: Primitives,
    /// The qualifiers of the last primitive, which a bare value repeats.
    repeated: Option<Qualifiers>,
}

impl<'a> Parser<'a> {
    fn expression(&mut self) -> Result<Block> {
        let mut left = self.term()?;
        loop {
            let is_and = match self.peek() {
                Some("and" | "&&") => true,
                Some("or" | "||") => false,
                _ => return Ok(left),
            };
            self.next += 1;
            let right = self.term()?;
            let builder = &mut self.made.builder;
            left = if is_and { builder.and(left, right) } else { builder.or(left, right) };
        }
    }

    fn term(&mut self) -> Result<Block> {
        let is_negated = self.negations();
        let block = if self.is_arithmetic() {
            self.repeated = None;
            self.relation()?
        } else if self.peek() == Some("(") {
            self.group()?
        } else {
            self.primitive()?
        };
        if self.made.builder.is_full() {
            let fix = format!("write it as several rules: at most {MAX_TESTS} tests are made of one");
            return Err(self.error_before(Fault::Limit, fix));
        }
        Ok(if is_negated { Builder::not(block) } else { block })
    }

    /// Consumes `not`s and returns whether their number is odd.
    fn negations(&mut self) -> bool {
        let mut is_negated = false;
        while let Some("not" | "!") = self.peek() {
            self.next += 1;
            is_negated = !is_negated;
        }
        is_negated
    }

    fn group(&mut self) -> Result<Block> {
        self.descend()?;
        self.expect("(", "open a parenthesis")?;
        let block = self.expression()?;
        self.expect(")", "close the parenthesis")?;
        self.depth -= 1;
        Ok(block)
    }

    fn primitive(&mut self) -> Result<Block> {
        let Some(token) = self.token().filter(|token| token.is_word) else {
            return Err(self.unexpected("write a primitive such as \"tcp port 80\""));
        };
        match token.text {
            "less" | "greater" => self.length(token.text == "less"),
            "broadcast" => {
                self.next += 1;
                Ok(self.plain(|made| made.ether(crate::primitive::Side::Destination, 0xffff_ffff_ffff)))
            }
            "multicast" => {
                self.next += 1;
                Ok(self.plain(Primitives::ether_group))
            }
            "vlan" => self.vlan(),
            "dscp" | "ecn" | "tos" => self.traffic_class(token.text),
            "mark" => self.mark(),
            "src" | "dst" | "host" | "net" | "port" | "portrange" | "proto" => self.qualified(None),
            "and" | "or" => Err(self.unexpected("write a primitive before it")),
            text => match named(PROTOCOLS, text) {
                Some(protocol) => self.of_protocol(protocol),
                None => self.repeated_value(),
            },
        }
    }

    /// Parses what begins with the name of a protocol.
    fn of_protocol(&mut self, protocol: Protocol) -> Result<Block> {
        match self.peek_at(1) {
            Some("src" | "dst" | "host" | "net" | "port" | "portrange" | "proto") => {
                self.next += 1;
                return self.qualified(Some(protocol));
            }
            Some("broadcast") => {
                self.next += 1;
                if protocol != Protocol::Ether {
                    let fix = "the network's mask is not known; write dst host with its broadcast address";
                    return Err(self.error(Fault::Refused, fix));
                }
                return self.primitive();
            }
            Some("multicast") => {
                self.next += 2;
                return match protocol {
                    Protocol::Ether => Ok(self.plain(Primitives::ether_group)),
                    Protocol::Ip => Ok(self.plain(Primitives::ip_multicast)),
                    Protocol::Ip6 => Ok(self.plain(Primitives::ip6_multicast)),
                    _ => Err(self.error_before(Fault::Unexpected, "write ether, ip or ip6 before it")),
                };
            }
            _ => self.next += 1,
        }
        if protocol == Protocol::Ether {
            return Err(
                self.unexpected("write host, src, dst, proto, broadcast or multicast behind \"ether\"")
            );
        }
        if let Some(Token { is_word: true, text, .. }) = self.token()
            && !matches!(text, "and" | "or")
        {
            return Err(self
                .unexpected("write host, net, port, src or dst before a value, \"and\" before a primitive"));
        }
        Ok(self.plain(|made| made.protocol(protocol)))
    }

    fn length(&mut self, is_less: bool) -> Result<Block> {
        use crate::question::{Load, Relation};
        self.next += 1;
        let wanted = self.number("a length in bytes", u32::MAX)?;
        let relation = if is_less { Relation::LessOrEqual } else { Relation::GreaterOrEqual };
        Ok(self.plain(|made| made.builder.compare(Load::Length, u32::MAX, relation, wanted)))
    }

    fn vlan(&mut self) -> Result<Block> {
        self.next += 1;
        let is_bare = self.peek().is_none_or(|next| matches!(next, "and" | "or" | "&&" | "||" | ")"));
        let id = if is_bare { None } else { Some(self.number("a VLAN from 0 to 4095", 4095)?) };
        Ok(self.plain(|made| made.vlan(id)))
    }

    fn traffic_class(&mut self, word: &str) -> Result<Block> {
        use crate::names::{CODE_POINTS, CONGESTION};
        self.next += 1;
        let (what, names, max, shift) = match word {
            "dscp" => ("a code point from 0 to 63, or a name such as ef, af11, cs6", CODE_POINTS, 63, 2),
            "ecn" => ("congestion bits from 0 to 3, or not-ect, ect0, ect1, ce", CONGESTION, 3, 0),
            _ => ("a byte from 0 to 255", &[][..], 255, 0),
        };
        let value = match self.peek().and_then(|text| named(names, text)) {
            Some(value) => {
                self.next += 1;
                value
            }
            None => self.number(what, max)?,
        };
        Ok(self.plain(|made| made.traffic_class(max << shift, value << shift)))
    }

    /// `mark N`, or `mark N/MASK`: the bits of the mask are N's.
    fn mark(&mut self) -> Result<Block> {
        use crate::question::{Load, Relation};
        self.next += 1;
        let wanted = self.number("a mark such as 5, or one and a mask, 0x10/0xf0", u32::MAX)?;
        let mut mask = u32::MAX;
        if self.peek() == Some("/") {
            self.next += 1;
            mask = self.number("a mask such as 0xff", u32::MAX)?;
        }
        if wanted & !mask != 0 {
            let fix = "leave bits that the mask has not out of the value: no packet matches";
            return Err(self.error_before(Fault::Value, fix));
        }
        Ok(self.plain(|made| made.builder.compare(Load::Mark, mask, Relation::Equal, wanted)))
    }

    /// A primitive whose qualifiers can't be repeated.
    fn plain(&mut self, make: impl FnOnce(&mut Primitives) -> Block) -> Block {
        self.repeated = None;
        make(&mut self.made)
    }

    /// Parses a number up to `max`; `what` describes it in errors.
    fn number(&mut self, what: &str, max: u32) -> Result<u32> {
        match self.peek().and_then(value::number) {
            Some(number) if number <= max => {
                self.next += 1;
                Ok(number)
            }
            _ => Err(self.error(Fault::Value, format!("write {what}"))),
        }
    }

    fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let fix = format!("nest at most {MAX_DEPTH} parentheses and brackets");
            return Err(self.error(Fault::Limit, fix));
        }
        Ok(())
    }

    fn expect(&mut self, symbol: &str, purpose: &str) -> Result<()> {
        if self.peek() != Some(symbol) {
            return Err(self.unexpected(&format!("{purpose} with \"{symbol}\"")));
        }
        self.next += 1;
        Ok(())
    }

    fn token(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).copied()
    }

    fn peek(&self) -> Option<&'a str> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.next + ahead).map(|token| token.text)
    }

    /// The error for an unexpected token; an unknown word is reported as such.
    fn unexpected(&self, fix: &str) -> ExpressionError {
        let Some(Token { is_word: true, text, .. }) = self.token() else {
            return self.error(Fault::Unexpected, fix);
        };
        if let Some(reason) = named(REFUSED, text) {
            return self.error(Fault::Refused, reason);
        }
        let protocols = || PROTOCOLS.iter().map(|(name, _)| *name);
        let constants = CONSTANTS.iter().map(|(name, _)| *name);
        let known = WORDS.split(' ').chain(protocols()).chain(constants);
        if text.starts_with(|c: char| c.is_ascii_digit()) || known.clone().any(|word| word == text) {
            return self.error(Fault::Unexpected, fix);
        }
        match nearest(text, known) {
            Some(near) => self.error(Fault::Unknown, format!("did you mean \"{near}\"?")),
            None => self.error(Fault::Unknown, fix),
        }
    }

    /// An error at the next token.
    fn error(&self, fault: Fault, fix: impl Into<String>) -> ExpressionError {
        self.error_at(self.next, fault, fix)
    }

    /// An error at the token just read.
    fn error_before(&self, fault: Fault, fix: impl Into<String>) -> ExpressionError {
        self.error_at(self.next.saturating_sub(1), fault, fix)
    }

    fn error_at(&self, number: usize, fault: Fault, fix: impl Into<String>) -> ExpressionError {
        let token = self.tokens.get(number);
        ExpressionError {
            column: column(self.text, token.map_or(self.text.len(), |token| token.start)),
            found: token.map_or_else(|| "the end".into(), |token| quoted(token.text)),
            fault,
            fix: fix.into(),
        }
    }
}
