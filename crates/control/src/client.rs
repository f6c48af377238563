//! Client that finds running instances and sends them requests.

use crate::forwarder::{ProgramRequest, segment};
use crate::instance::{Info, RoutePage};
use crate::object::{Kind, Object, ObjectPage, ObjectQuery};
use crate::overview::{EventPage, Summary};
use crate::place::{self, InstanceSocket};
use crate::problem::{Problem, meant};
use crate::remote::{RemoteInstance, Stream};
use crate::rewire::{RewireRequest, RewireResponse};
use crate::rows::RowFilter;
use crate::scenario::{Comparison, ScenarioRequest, ScenarioText};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use longwire_rundir::{NAME_ANOTHER, PlaceError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// Time limit for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Time limit for an answer about a whole scenario: reading a large one anew takes long.
const SCENARIO_TIME: Duration = Duration::from_secs(300);
/// Longest answer, in bytes: the statistics of a million links are smaller.
const MAX_ANSWER: usize = 1 << 30;

/// A blocking client of one running instance.
#[derive(Debug)]
pub struct Client {
    place: Place,
    runtime: Runtime,
    patience: Duration,
}

/// Where an instance answers.
#[derive(Debug)]
enum Place {
    /// On its socket.
    Socket(InstanceSocket),
    /// On TCP.
    Remote(RemoteInstance),
}

/// A failed request.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No instance runs.
    #[error("no instance of this user is running (in {}); `longwire run` starts one", .0.display())]
    NoneRunning(PathBuf),
    /// No instance of that name is running.
    #[error(
        "no instance \"{wanted}\" is running; there {} {running}",
        if running.contains(", ") { "are" } else { "is" }
    )]
    NotRunning {
        /// The request.
        wanted: String,
        /// The running instances.
        running: String,
    },
    /// The name is ambiguous.
    #[error("which instance? There are {0}: choose one with --instance")]
    Several(String),
    /// The directory of the sockets can't be read.
    #[error("{0}; {NAME_ANOTHER}")]
    Directory(#[from] PlaceError),
    /// The instance does not answer, or not correctly.
    #[error("{place} does not answer: {reason}")]
    Silent {
        /// Its socket or address.
        place: String,
        /// What happened instead.
        reason: String,
    },
    /// No object of any kind has that name.
    #[error("there is no link or other object \"{name}\"{}", meant(near.as_ref()))]
    NoObject {
        /// The request.
        name: String,
        /// What was probably meant.
        near: Option<(Kind, String)>,
    },
    /// The instance refused.
    #[error("{0}")]
    Refused(Box<Problem>),
}

/// The running instances, by name. Sockets that nobody serves are removed, with those of the routers of
/// killed instances.
///
/// # Errors
/// If the directory can't be read. A missing one is treated as empty.
pub fn list(directory: &Path) -> Result<Vec<InstanceSocket>, ClientError> {
    let runtime = runtime(directory)?;
    let mut found = place::sockets(directory)?;
    let connect = |path: &Path| runtime.block_on(UnixStream::connect(path));
    for path in place::unlisted(directory) {
        if connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // Another client may have removed it meanwhile.
            let _ = std::fs::remove_file(path);
        }
    }
    found.retain(|found| match connect(&found.path) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            place::clear(found);
            false
        }
        // It has just ended, or is not our file; a full queue of connections means that it runs.
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    });
    Ok(found)
}

impl Client {
    /// Selects the instance `wanted`, given as its name, its process number or both as `name-number`; or the
    /// only one.
    ///
    /// # Errors
    /// If there is none, or the name is ambiguous; the error lists the candidates.
    pub fn connect(directory: &Path, wanted: Option<&str>) -> Result<Self, ClientError> {
        let mut running = list(directory)?;
        if running.is_empty() {
            return Err(ClientError::NoneRunning(directory.into()));
        }
        if let Some(wanted) = wanted {
            let all = names(&running);
            running.retain(|found| found.is_called(wanted));
            if running.is_empty() {
                return Err(ClientError::NotRunning { wanted: wanted.into(), running: all });
            }
        }
        if running.len() > 1 {
            return Err(ClientError::Several(names(&running)));
        }
        Self::of(running.remove(0), ANSWER_TIME)
    }

    /// A client of an instance found by [`list`], with `patience` as the time limit for answers.
    ///
    /// # Errors
    /// If the system can't provide timers or sockets.
    pub fn of(found: InstanceSocket, patience: Duration) -> Result<Self, ClientError> {
        Ok(Self { runtime: runtime(&found.path)?, place: Place::Socket(found), patience })
    }

    /// A client of an instance on TCP.
    ///
    /// # Errors
    /// If the system can't provide timers or sockets.
    pub fn of_remote(remote: RemoteInstance) -> Result<Self, ClientError> {
        let runtime = runtime(Path::new(&remote.authority()))?;
        Ok(Self { runtime, place: Place::Remote(remote), patience: ANSWER_TIME })
    }

    /// The chosen instance, if it is one of this machine's.
    pub fn found(&self) -> Option<&InstanceSocket> {
        match &self.place {
            Place::Socket(found) => Some(found),
            Place::Remote(_) => None,
        }
    }

    /// What it is called: its name, or its address.
    pub fn name(&self) -> String {
        self.found().map_or_else(|| self.place.to_string(), |found| found.name.clone())
    }

    /// Whether the instance has ended: its socket is gone, or nobody listens. An instance that hangs has not
    /// ended, and is waited for no longer than for an answer.
    pub fn has_ended(&self) -> bool {
        // A connection that does not fit the queue of a socket is refused at once.
        let connect = async { tokio::time::timeout(self.patience, self.place.connect()).await };
        let tried = self.runtime.block_on(connect);
        let gone = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        tried.is_ok_and(|tried| tried.is_err_and(|error| gone.contains(&error.kind())))
    }

    /// Name and version of the instance.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn instance(&self) -> Result<Info, ClientError> {
        self.ask(Method::GET, "/v1/instance", None)
    }

    /// The counters of the requested rows.
    ///
    /// # Errors
    /// If it does not answer, or the filter names an unknown field or row.
    pub fn stats(&self, filter: &RowFilter) -> Result<Value, ClientError> {
        self.ask(Method::GET, &with_query("/v1/stats", filter), None)
    }

    /// Its totals.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn summary(&self) -> Result<Summary, ClientError> {
        self.ask(Method::GET, "/v1/summary", None)
    }

    /// What is scheduled, and what has happened behind the entry of the log with this number.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn events(&self, after: u64) -> Result<EventPage, ClientError> {
        self.ask(Method::GET, &format!("/v1/events?after={after}"), None)
    }

    /// The description of its API.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn description(&self) -> Result<Value, ClientError> {
        self.ask(Method::GET, "/v1/openapi.json", None)
    }

    /// A page of objects of a kind.
    ///
    /// # Errors
    /// If they can't be sorted so, or it does not answer.
    pub fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, ClientError> {
        self.ask(Method::GET, &with_query(&format!("/v1/{}", kind.collection()), choice), None)
    }

    /// The object of this kind and name; without a kind, that of the first kind with such an object.
    ///
    /// # Errors
    /// If there is no such object, or the instance does not answer.
    pub fn object(&self, kind: Option<Kind>, name: &str) -> Result<Object, ClientError> {
        of_any(kind, name, |kind| self.ask(Method::GET, &object_path(kind, name), None))
    }

    /// Changes an object, found as by [`Client::object`]: all of `changes`, pairs of key and text, or none.
    /// Returns the object after the change.
    ///
    /// # Errors
    /// If there is no such object, a change is refused, or the instance does not answer.
    pub fn set(
        &self,
        kind: Option<Kind>,
        name: &str,
        changes: &[(String, String)],
    ) -> Result<Object, ClientError> {
        let change = |kind| {
            let changed = self.ask(Method::PATCH, &object_path(kind, name), Some(body_of(changes)));
            changed.map_err(without_place)
        };
        of_any(kind, name, change)
    }

    /// Adds and removes objects, all at one instant or none.
    ///
    /// # Errors
    /// If the instance refuses, or does not answer.
    pub fn rewire(&self, ask: &RewireRequest) -> Result<RewireResponse, ClientError> {
        let body = serde_json::to_string(ask).map_err(|error| self.silent(error.to_string()))?;
        self.ask(Method::PATCH, "/v1/scenario", Some(body))
    }

    /// A router's routes, or the first of them.
    ///
    /// # Errors
    /// If there is no such router, or the instance does not answer.
    pub fn routes(&self, router: &str) -> Result<RoutePage, ClientError> {
        self.ask(Method::GET, &format!("{}/routes", object_path(Kind::Router, router)), None)
    }

    /// Sends a request about a router's programs.
    ///
    /// # Errors
    /// If there is no such router, program or map, the request is refused, or the instance does not answer.
    pub fn forwarders(&self, router: &str, ask: &ProgramRequest) -> Result<Value, ClientError> {
        let (method, path, body) = ask.request(router);
        let body = (!body.is_null()).then(|| body.to_string());
        self.ask(method, &path, body)
    }

    /// The scenario that describes the running instance, in TOML.
    ///
    /// # Errors
    /// If it is unknown, or the instance does not answer.
    pub fn scenario(&self) -> Result<String, ClientError> {
        self.ask(Method::GET, "/v1/scenario", None).map(|text: ScenarioText| text.toml)
    }

    /// Compares the running instance with a scenario in TOML.
    ///
    /// # Errors
    /// If the scenario is invalid, or the instance does not answer.
    pub fn compare(&self, toml: &str) -> Result<Comparison, ClientError> {
        let body = serde_json::json!({ "toml": toml });
        self.ask(Method::POST, "/v1/scenario/differences", Some(body.to_string()))
    }

    /// Applies a scenario to the running instance.
    ///
    /// # Errors
    /// If the scenario is invalid or refused, or the instance does not answer.
    pub fn apply(&self, wanted: &ScenarioRequest) -> Result<Comparison, ClientError> {
        let body = serde_json::json!({ "toml": wanted.toml, "partial": wanted.partial });
        self.ask(Method::PUT, "/v1/scenario", Some(body.to_string()))
    }

    /// Ends the instance.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn stop(&self) -> Result<(), ClientError> {
        self.exchange(Method::DELETE, "/v1/instance", None).map(drop)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<T, ClientError> {
        let answer = self.exchange(method, path, body)?;
        serde_json::from_slice(&answer).map_err(|e| self.silent(format!("its answer can't be read: {e}")))
    }

    /// Sends a request and returns the answer's body, or the reported problem.
    fn exchange(&self, method: Method, path: &str, body: Option<String>) -> Result<Bytes, ClientError> {
        let reads_scenario = method != Method::GET && path.starts_with("/v1/scenario");
        let patience = if reads_scenario { SCENARIO_TIME } else { self.patience };
        let (host, token) = match &self.place {
            Place::Socket(_) => ("longwire".into(), None),
            Place::Remote(remote) => (remote.authority(), remote.token()),
        };
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let request = request
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|e| self.silent(e.to_string()))?;
        let answer =
            self.runtime.block_on(async { tokio::time::timeout(patience, send(&self.place, request)).await });
        let late = || self.silent(format!("no answer within {} s", patience.as_secs()));
        let (status, body) = answer.map_err(|_| late())?.map_err(|reason| self.silent(causes(&*reason)))?;
        if status.is_success() {
            return Ok(body);
        }
        Err(match (serde_json::from_slice::<Problem>(&body), &self.place) {
            (Ok(problem), Place::Socket(_)) => ClientError::Refused(problem.into()),
            (Ok(problem), Place::Remote(remote)) => ClientError::Refused(remote.explained(problem).into()),
            (Err(_), Place::Socket(_)) => self.silent(format!("it sent status {status} and no reason")),
            (Err(_), Place::Remote(remote)) => self.silent(remote.without_reason(status)),
        })
    }

    fn silent(&self, reason: String) -> ClientError {
        ClientError::Silent { place: self.place.to_string(), reason }
    }
}

impl Place {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Socket(found) => Ok(Box::new(UnixStream::connect(&found.path).await?)),
            Self::Remote(remote) => remote.connect().await,
        }
    }
}

/// Its socket or address.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(found) => write!(f, "{}", found.path.display()),
            Self::Remote(remote) => f.write_str(&remote.authority()),
        }
    }
}

type SendError = Box<dyn std::error::Error + Send + Sync>;

async fn send(place: &Place, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), SendError> {
    let stream = TokioIo::new(place.connect().await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?.to_bytes();
    driver.abort();
    Ok((status, body))
}

/// An error with all of its causes: what ended a connection is the last of them.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = all.map(ToString::to_string).collect();
    texts.dedup();
    let text = texts.join(": ");
    // What the alert of RFC 8446, section 6.2, means to a user.
    if text.contains("CertificateRequired") {
        "it wants a client's certificate and its key".into()
    } else {
        text
    }
}

fn runtime(directory: &Path) -> Result<Runtime, ClientError> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|e| ClientError::Silent { place: directory.display().to_string(), reason: e.to_string() })
}

fn object_path(kind: Kind, name: &str) -> String {
    format!("/v1/{}/{}", kind.collection(), segment(name))
}

/// The answer for the kind; without one, for the first kind with an object of the name.
fn of_any<T>(
    kind: Option<Kind>,
    name: &str,
    ask: impl Fn(Kind) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    if let Some(kind) = kind {
        return ask(kind);
    }
    let (mut near, mut forbidden, mut is_unknown) = (None, None, false);
    for kind in Kind::ALL {
        match ask(kind) {
            Err(ClientError::Refused(problem)) if problem.status == 404 => {
                is_unknown = true;
                near = near.or(problem.suggestion.map(|suggestion| (kind, suggestion)));
            }
            // A scope is too small for a kind whether or not it has the name.
            Err(ClientError::Refused(problem)) if problem.status == 403 => {
                forbidden = forbidden.or(Some(problem));
            }
            answered => return answered,
        }
    }
    // What is not there can be meant only of a program, ROUTER/NAME: setting it installs it.
    match forbidden.filter(|_| !is_unknown || name.contains('/')) {
        Some(problem) => Err(ClientError::Refused(problem)),
        None => Err(ClientError::NoObject { name: name.into(), near }),
    }
}

/// The changes as JSON, written pair by pair, so that a duplicate key reaches the instance and is refused.
fn body_of(changes: &[(String, String)]) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let pairs: Vec<_> = changes.iter().map(|(k, v)| format!("{}:{}", text(k), text(v))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// A refusal without the place in the body, which nobody but the client has seen.
fn without_place(error: ClientError) -> ClientError {
    let ClientError::Refused(mut problem) = error else { return error };
    if problem.status == 400
        && let Some(place) = problem.detail.rfind(" at line ")
    {
        problem.detail.truncate(place);
    }
    ClientError::Refused(problem)
}

/// A path with parameters: the fields of `query` that have values.
fn with_query(path: &str, query: &impl Serialize) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return path.into() };
    let pairs = fields.iter().filter_map(|(key, value)| match value {
        Value::Null => None,
        Value::String(text) => Some(format!("{key}={}", segment(text))),
        other => Some(format!("{key}={other}")),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn names(found: &[InstanceSocket]) -> String {
    found.iter().map(InstanceSocket::full_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
