//! Output: results on standard output, notes on standard error. Control characters in names are escaped.

use crate::printable;
use std::error::Error;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

/// Passes standard output to `write`. A terminal that was closed needs no output.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    let mut out = io::stdout().lock();
    let text = String::from_utf8_lossy(&text);
    let written = out.write_all(printable(&text).as_bytes()).and_then(|()| out.flush());
    written.or_else(|error| if is_closed_terminal(&error) { Ok(()) } else { Err(error) })
}

/// Whether an error of standard output means that it is a terminal whose window was closed. Such a terminal
/// answers no question about itself, but remains a device.
fn is_closed_terminal(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    let is_device = || {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok::<_, io::Error>(file.metadata()?.file_type().is_char_device())
    };
    error.raw_os_error() == Some(EIO) && is_device().unwrap_or(false)
}

/// Prints `text` and a newline.
///
/// # Errors
/// If standard output can't be written to.
pub fn print(text: &str) -> io::Result<()> {
    print_with(|out| writeln!(out, "{text}"))
}

/// Clears the terminal, so that the next output begins at the top.
pub fn clear_screen() {
    // Home, then erase to the end. If the write fails, nothing is shown.
    let _ = write!(io::stdout(), "\x1b[H\x1b[J");
}

/// Prints a note on standard error.
pub fn note(text: &str) {
    // If notes can't be written, that can't be reported either.
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Whether the environment allows colours: `NO_COLOR`, if it is not empty, says no (no-color.org).
pub fn allows_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether messages on standard error are in colour: on a terminal that has them.
pub fn has_colours() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stderr().is_terminal() && !is_dumb && allows_colours()
}

/// An error and its causes in one line; a cause whose text is part of an earlier one is left out.
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
