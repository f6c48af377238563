//! The API of a running instance, and its client.
//!
//! An instance serves HTTP with JSON on its own Unix socket in [`directory`], which only its user can open.
//! The socket disappears with the instance; the socket of a killed one is removed by the next [`list`]. The
//! API is described by the OpenAPI document that it serves, `GET /v1/openapi.json`.
#![forbid(unsafe_code)]

mod changes;
mod client;
mod forwarder;
mod instance;
mod place;
mod problem;
mod routes;
mod server;

pub use client::{Client, ClientError, list};
pub use forwarder::ForwarderAsk;
pub use instance::{
    ChangeRoute, Duplex, Info, Instance, Link, LinkAnswer, LinkPage, Medium, RoutePage, SetError, Source,
    WeighFlow,
};
pub use longwire_rundir::{PlaceError, directory, prepare};
pub use place::{Found, control_socket};
pub use problem::Problem;
pub use routes::openapi;
pub use server::{Server, StartError};
