//! Scenario file to checked plan.
//!
//! [`parse`] reads the text once into a [`Plan`] that can't be wrong, or says everything that is wrong with it, each
//! with file, line, column, field and the mend. [`schema`] describes the file; it comes from the same structures.
#![forbid(unsafe_code)]

mod address;
mod file;
mod finding;
mod plan;
mod read;
mod template;
mod words;
mod written;

pub use address::{Mac, Network};
pub use finding::{Finding, ScenarioError};
pub use plan::{
    AddressRule, Attachment, Bridge, End, EngineSettings, Fidelity, Host, HostRoute, Link, Pace, PairRule,
    Plan, Port, Profile, Route, Routes, Segment, Source,
};
pub use words::{Driver, HostDriver, Mapping, Routing, Wait};
