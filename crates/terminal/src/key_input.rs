//! Keys and other events of the terminal, and its end.

use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Longest wait for a key: so late are answers shown and signals noticed.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What the terminal has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Event(Event),
    Nothing,
    /// Nobody is at the terminal any more: its window or connection is closed.
    Closed,
}

/// Reads the events of the terminal. crossterm 0.29 reads a closed terminal for ever, so it is asked only
/// about an open one, and never to wait.
#[derive(Debug)]
pub(crate) struct KeyInput {
    /// What crossterm reads.
    terminal: OwnedFd,
    found: Found,
}

/// What was found the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Event,
    Nothing,
    /// Bytes that are no event yet.
    Bytes,
}

impl KeyInput {
    /// Opens the terminal as crossterm does: standard input, or else the terminal of this session.
    pub(crate) fn open() -> io::Result<Self> {
        let input = io::stdin();
        let terminal = if input.is_terminal() {
            input.as_fd().try_clone_to_owned()?
        } else {
            File::options().read(true).write(true).open("/dev/tty")?.into()
        };
        Ok(Self::of(terminal))
    }

    const fn of(terminal: OwnedFd) -> Self {
        Self { terminal, found: Found::Nothing }
    }

    /// Waits for an event for a short time.
    pub(crate) fn next(&mut self) -> io::Result<Input> {
        let state = match self.found {
            // crossterm may have read more of them.
            Found::Event => self.poll(PollFlags::empty(), AT_ONCE),
            Found::Nothing => self.poll(PollFlags::IN, TICK),
            Found::Bytes => self.poll(PollFlags::empty(), TICK),
        }?;
        if is_end(state) {
            return Ok(Input::Closed);
        }
        if event::poll(Duration::ZERO)? {
            self.found = Found::Event;
            return event::read().map(Input::Event);
        }
        self.found = if state.contains(PollFlags::IN) { Found::Bytes } else { Found::Nothing };
        Ok(Input::Nothing)
    }

    /// Whether the terminal has been closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.poll(PollFlags::empty(), AT_ONCE).is_ok_and(is_end)
    }

    fn poll(&self, wanted: PollFlags, time: Timespec) -> io::Result<PollFlags> {
        let mut polls = [PollFd::new(&self.terminal, wanted)];
        match poll(&mut polls, Some(&time)) {
            // A signal, such as that of a new size.
            Ok(_) | Err(Errno::INTR) => Ok(polls[0].revents()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the state of a terminal is that of a closed one.
fn is_end(state: PollFlags) -> bool {
    state.intersects(PollFlags::HUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    #[test]
    fn a_closed_terminal_ends_its_input() {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let name = ptsname(&outer, Vec::new()).unwrap();
        let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut input = KeyInput::of(terminal);
        assert!(!input.is_closed());
        drop(outer);
        assert!(input.is_closed());
        for found in [Found::Event, Found::Nothing, Found::Bytes] {
            input.found = found;
            assert_eq!(input.next().unwrap(), Input::Closed);
        }
    }
}
