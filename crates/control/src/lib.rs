//! The API of a running instance, and its client.
//!
//! An instance serves HTTP with JSON on its own Unix socket in [`directory`], which only its user can open.
//! The socket disappears with the instance; that of a killed one is removed by the next [`list`]. The API is
//! described by the OpenAPI document that it serves, `GET /v1/openapi.json`.
#![forbid(unsafe_code)]

mod agent;
mod agent_routes;
mod answers;
mod certificate;
mod changes;
mod client;
mod dashboard;
mod document;
mod forwarder;
mod forwarder_routes;
mod instance;
mod object;
mod overview;
mod place;
mod problem;
mod remote;
mod requests;
mod rewire;
mod routes;
mod rows;
mod saving;
mod scenario;
mod server;
mod service;
mod set_error;
mod tls;
mod tokens;
mod web;
mod worded;

pub use agent::{Agent, AgentError, AgentState, Condition, PartRequest, PartState};
pub use answers::{Answers, Edition};
pub use client::{Client, ClientError, list};
pub use forwarder::{Entries, MapChange, NewForwarder, NewState, ProgramRequest, Rings, TypeQuery};
pub use instance::{Info, Instance, RoutePage, chosen_in_order};
pub use longwire_rundir::{PlaceError, directory, prepare};
pub use object::{
    Bounds, Kind, Object, ObjectNames, ObjectPage, ObjectQuery, Quantity, Settable, Sort, fits, is_pattern,
};
pub use overview::{
    EventPage, EventQuery, LoggedEvent, PlannedEvent, PoolUse, Summary, Topology, TopologyLink, TopologyNode,
};
pub use place::{InstanceSocket, control_socket};
pub use problem::Problem;
pub use remote::{RemoteError, RemoteFiles, RemoteInstance, RemoteUrl};
pub use rewire::{RewireRequest, RewireResponse, RewiredObject, section};
pub use routes::document;
pub use rows::{RowFilter, SelectableRow};
pub use saving::{Made, Saved, Saver, Saving};
pub use scenario::{
    Comparison, ObjectDifference, RefusedDifference, ScenarioRequest, ScenarioText, SettingDifference,
};
pub use server::{Server, StartError};
pub use set_error::SetError;
pub use tls::{Tls, TlsError, TlsFiles};
pub use tokens::{Scope, TokenError, Tokens};
pub use web::{Web, WebAddress, WebError, WebServer};
