//! What is printed: results on standard output, notes on standard error. Control characters in names are
//! written out.

use crate::printable;
use std::error::Error;
use std::io::{self, Write};

/// Prints what `write` writes.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    let mut out = io::stdout().lock();
    out.write_all(printable(&String::from_utf8_lossy(&text)).as_bytes())?;
    out.flush()
}

/// Prints `text` and a newline.
///
/// # Errors
/// If standard output can't be written to.
pub fn print(text: &str) -> io::Result<()> {
    print_with(|out| writeln!(out, "{text}"))
}

/// Lets what is printed next begin at the top of an empty terminal.
pub fn clear_screen() {
    // Home, and all behind it away. What can't be written to shows nothing.
    let _ = write!(io::stdout(), "\x1b[H\x1b[J");
}

/// Says something beside the result, on standard error.
pub fn note(text: &str) {
    // Where nobody reads notes there is nobody to tell that they can't be written.
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// An error and its causes in one line, without those whose text is in one before.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let cause = error.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    printable(&text).into_owned()
}
