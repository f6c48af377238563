//! The command line as it is parsed, and the texts of its errors.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, CommandFactory};
use longwire_halves::Interval;
use longwire_report::output::has_colours;
use longwire_units::{Bytes, Nanos, Probability, Rate};
use std::any::TypeId;
use std::error::Error;
use std::io::{self, Write};
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};

/// The whole command. Values of options may be negative: that they can't be is said by those who read them.
pub fn command() -> Command {
    with_negative_values(crate::Cli::command())
}

fn with_negative_values(command: Command) -> Command {
    let within = |arg: Arg| {
        if arg.get_long().is_none() || !arg.get_action().takes_values() {
            arg
        } else if is_quantity(arg.get_value_parser()) {
            arg.allow_hyphen_values(true)
        } else {
            arg.allow_negative_numbers(true)
        }
    };
    command.mut_args(within).mut_subcommands(with_negative_values)
}

/// Whether values have units, as in `-5ms`.
fn is_quantity(parser: &ValueParser) -> bool {
    let quantities = [
        TypeId::of::<Nanos>(),
        TypeId::of::<Rate>(),
        TypeId::of::<Probability>(),
        TypeId::of::<Bytes>(),
        TypeId::of::<Interval>(),
    ];
    quantities.iter().any(|of| parser.type_id() == *of)
}

/// A parser of words with their values and the help for each.
pub fn choice<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, T, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let words = all.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(move |chosen| {
        let value = all.iter().find(|(word, ..)| *word == chosen).map(|(_, value, _)| *value);
        value.ok_or("it is none of them")
    })
}

/// Prints help, or an error of the command line.
///
/// # Errors
/// If it can't be printed.
pub fn print(error: &clap::Error) -> io::Result<()> {
    match fault_and_fix(error) {
        Some(_) if has_colours() => {
            write!(io::stderr(), "{}", in_words(error, &error.render().ansi().to_string()))
        }
        Some(_) => write!(io::stderr(), "{}", text(error)),
        None => error.print(),
    }
}

/// The text of an error of the command line.
pub fn text(error: &clap::Error) -> String {
    in_words(error, &error.render().to_string())
}

fn in_words(error: &clap::Error, text: &str) -> String {
    match fault_and_fix(error) {
        Some((fault, fix)) => text.replacen(&format!(": {fault}"), &format!(": {fix}"), 1),
        None => text.to_owned(),
    }
}

/// What the standard library says about a value, which names no fix, and the fix.
fn fault_and_fix(error: &clap::Error) -> Option<(String, String)> {
    let source = error.source()?;
    let fault = source.to_string();
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value,
        _ => return None,
    };
    let is_option =
        value.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_alphabetic()));
    let fix = if is_option {
        format!("the next word, {value}, is an option; write a value before it")
    } else if let Some(number) = source.downcast_ref::<ParseIntError>() {
        match number.kind() {
            IntErrorKind::Zero => "write a whole number from 1".into(),
            IntErrorKind::PosOverflow => "this number is too large".into(),
            _ => "write a whole number, such as 1".into(),
        }
    } else {
        source.downcast_ref::<AddrParseError>()?;
        if fault.contains("socket") {
            format!("\"{value}\" is not an address and port, such as 192.0.2.7:9000")
        } else {
            format!("\"{value}\" is not an address, such as 192.0.2.7")
        }
    };
    Some((fault, fix))
}
