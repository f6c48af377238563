//! Whether an interface carries frames.

/// State of a port's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum InterfaceState {
    /// It carries frames.
    Up = 0,
    /// The wire is unplugged.
    Down = 1,
    /// The interface is gone.
    Gone = 2,
}
