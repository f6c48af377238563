//! Programs of forwarders: from which object, with which constants, maps and exits.

use crate::finding::suggestion;
use crate::forwarder_plan::{ForwarderFault, WrittenForwarder, fault};
use longwire_program::{Object, ObjectError, Program, ShippedForwarder};
use longwire_settings::plain_file::bytes_of;
use std::borrow::Cow;
use std::path::Path;

/// Longest object file in bytes.
const LONGEST_OBJECT: u64 = 4 << 20;

impl WrittenForwarder {
    /// Its object: of a shipped program, or the contents of a file relative to `folder`.
    ///
    /// # Errors
    /// If there is no such program or file.
    pub fn object(&self, folder: &Path) -> Result<Cow<'static, [u8]>, ForwarderFault> {
        if self.lets_all_pass() {
            return Ok(Cow::Borrowed(&[]));
        }
        if let Some(shipped) = ShippedForwarder::named(&self.program) {
            return Ok(shipped.object.into());
        }
        if self.program.is_empty() {
            let why = "no program is named: name an object that clang -target bpf has made, or one of ";
            return Err(fault("program", format!("{why}{}", shipped_names())));
        }
        let path = folder.join(&self.program);
        bytes_of(&path, LONGEST_OBJECT).map(Cow::Owned).map_err(|error| {
            let why = format!(
                "{}: {error}; {}name an object that clang -target bpf has made, or one of {}",
                path.display(),
                near_shipped(&self.program),
                shipped_names()
            );
            fault("program", why)
        })
    }

    /// Whether no program is named, so that the key alone decides what goes up.
    pub fn lets_all_pass(&self) -> bool {
        self.program.is_empty() && self.level.as_deref().is_some_and(|level| level != "data-path")
    }

    /// The program in its object.
    ///
    /// # Errors
    /// If the object can't be read, or has no such program.
    pub fn program(&self, object: &[u8]) -> Result<Program, ForwarderFault> {
        let (read, function) = self.chosen(object)?;
        read.program(&function).map_err(|error| self.of_object(&error))
    }

    /// A program of its object for pricing: it may be one that an entry of a map names.
    ///
    /// # Errors
    /// As [`WrittenForwarder::program`].
    pub fn any_program(&self, object: &[u8]) -> Result<Program, ForwarderFault> {
        let (read, function) = self.chosen(object)?;
        read.any_program(&function).map_err(|error| self.of_object(&error))
    }

    fn of_object(&self, error: &ObjectError) -> ForwarderFault {
        fault("program", format!("{}: {error}", self.program))
    }

    /// Its object with constants, maps and exits set, and the function's name.
    fn chosen<'o>(&self, object: &'o [u8]) -> Result<(Object<'o>, String), ForwarderFault> {
        let of_object = |error: ObjectError| self.of_object(&error);
        let mut read = Object::parse(object).map_err(of_object)?;
        for (name, text) in &self.constants {
            let why = |text: &str| {
                format!("\"{}\" is not a whole number: write one such as 100 or 0x64", text.escape_debug())
            };
            let number = |text: &str| whole(text.trim()).ok_or_else(|| fault("constants", why(text)));
            let numbers: Vec<i128> = text.split(',').map(number).collect::<Result<_, _>>()?;
            read.set_constant(name, &numbers).map_err(|error| fault("constants", error.to_string()))?;
        }
        read.set_exits(&self.exits).map_err(|error| fault("exits", error.to_string()))?;
        for (name, text) in &self.maps {
            let why =
                || format!("\"{}\" is not a number of entries: write one such as 64", text.escape_debug());
            let of_map = |error: ObjectError| fault("maps", error.to_string());
            if text.contains(':') {
                read.set_targets(name, &targets(text)?).map_err(of_map)?;
                continue;
            }
            let Some(entries) = whole(text.trim()) else {
                let programs: Vec<&str> = text.split(',').map(str::trim).collect();
                read.set_programs(name, &programs).map_err(|error| match error {
                    ObjectError::NoProgramArray { .. } => fault("maps", why()),
                    error => of_map(error),
                })?;
                continue;
            };
            let entries = u32::try_from(entries).map_err(|_| fault("maps", why()))?;
            read.set_entries(name, entries).map_err(of_map)?;
        }
        let function = self.function_of(&read)?;
        Ok((read, function))
    }

    /// The name of the function.
    fn function_of(&self, read: &Object<'_>) -> Result<String, ForwarderFault> {
        let shipped = ShippedForwarder::named(&self.program).map(|shipped| shipped.function);
        let mut programs = read.programs().map(|(name, _)| name);
        let function = match (self.function.as_deref().or(shipped), programs.next(), programs.next()) {
            (Some(function), _, _) | (None, Some(function), None) => function,
            (None, None, _) => {
                let why = format!("{}: it has no program: mark one with SEC(\"xdp\")", self.program);
                return Err(fault("program", why));
            }
            (None, Some(_), Some(_)) => {
                let names: Vec<&str> = read.programs().map(|(name, _)| name).collect();
                let why = format!("the object has several programs: name one of {}", names.join(", "));
                return Err(fault("function", why));
            }
        };
        Ok(function.to_owned())
    }
}

fn shipped_names() -> String {
    ShippedForwarder::ALL.iter().map(|shipped| shipped.name).collect::<Vec<_>>().join(", ")
}

/// A suggestion of a shipped program as the beginning of a fix; empty if none is near.
pub fn near_shipped(given: &str) -> String {
    match suggestion(given, ShippedForwarder::ALL.iter().map(|shipped| shipped.name)) {
        Some(near) => format!("did you mean \"{near}\"? Or "),
        None => String::new(),
    }
}

/// Targets of a map's entries: a number each and, after a colon, the program that runs there, if any.
fn targets(text: &str) -> Result<Vec<(u32, Option<&str>)>, ForwarderFault> {
    fn one(text: &str) -> Option<(u32, Option<&str>)> {
        let (first, exit) = text.split_once(':').unwrap_or((text, ""));
        let first = u32::try_from(whole(first.trim())?).ok()?;
        Some((first, Some(exit.trim()).filter(|exit| !exit.is_empty())))
    }
    let none = |text: &str| {
        let fix = "write NUMBER:PROGRAM, such as 1:stamp, or 1:";
        fault("maps", format!("\"{}\" leads nowhere: {fix}", text.escape_debug()))
    };
    text.split(',').map(|each| one(each).ok_or_else(|| none(each))).collect()
}

/// A whole number, decimal or hexadecimal with 0x.
fn whole(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.ok().map(|number| sign * i128::from(number))
}
