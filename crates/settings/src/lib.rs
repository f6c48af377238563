//! Settings: each is declared once, as a field of a struct, and everything else is made from that.
//!
//! `#[derive(Settings)]` makes a [`Spec`] from a struct: names, types, defaults and meaning of its settings.
//! This row is the source of the scenario's keys and schema, command-line help, changes at run time, and the
//! reference pages. Values read for the row are converted back to the struct, so that no code accesses them
//! by index.
//!
//! ```
//! use longwire_settings::{Choice, Settings};
//! use longwire_units::{Nanos, Probability};
//!
//! /// Loses packets, sometimes.
//! #[derive(Settings)]
//! #[settings(key = "loss", kind = "example", source = "own definition")]
//! struct Example {
//!     /// share of packets lost
//!     loss: Probability,
//!     /// how long it goes on, up to 10 s
//!     #[setting(default = "1 s", max = Nanos::from_secs(10))]
//!     lasts: Nanos,
//!     /// where they are lost
//!     #[setting(name = "where", default = "arrival")]
//!     place: Place,
//!     /// how many are lost in a row at most
//!     #[setting(default_is = "any number", min = 1, max = 100, live)]
//!     row: Option<u32>,
//! }
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Choice)]
//! enum Place {
//!     Arrival,
//!     OnTheWire,
//! }
//!
//! let read = Example::read(&[("loss", "2 %"), ("where", "on-the-wire")]).unwrap();
//! assert_eq!((read.lasts, read.place, read.row), (Nanos::from_secs(1), Place::OnTheWire, None));
//! assert_eq!(Example::read(&[("loss", "2 %"), ("row", "3")]).unwrap().row, Some(3));
//! assert_eq!(Example::SPEC.params.iter().filter(|param| param.live).count(), 1);
//! let error = Example::read(&[("loss", "2 %"), ("lasts", "1 h")]).err().unwrap();
//! assert_eq!(error.to_string(), "lasts: \"1 h\" is out of range; write at most 10 s");
//! ```
#![forbid(unsafe_code)]

mod choice;
mod error;
mod kind;
mod markdown;
pub mod plain_file;
mod setting;
mod spec;
mod value;
mod values;

pub use choice::Choice;
pub use error::SpecError;
pub use kind::{Form, Grammar, ParamKind, Reading};
pub use longwire_settings_derive::{Choice, Settings};
pub use markdown::markdown;
pub use setting::{Setting, Settings, take};
pub use spec::{Fallback, Param, Spec};
pub use value::{Limit, Millionths, Parsed, Value};
pub use values::Values;
