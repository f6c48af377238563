//! Where the view has its numbers from.

use longwire_control::{
    Client, ClientError, EventPage, EventQuery, Instance, Kind, Object, ObjectPage, ObjectQuery,
    ProgramRequest, SetError, Summary, document,
};
use serde_json::Value;
use std::sync::Arc;

/// A running instance, as the view asks it. The methods may block, and are called on a thread of their own.
pub trait WatchedInstance: Send {
    /// How many links it has: quick, however many there are.
    ///
    /// # Errors
    /// If it does not answer.
    fn links(&self) -> Result<usize, WatchError>;

    /// Its totals.
    ///
    /// # Errors
    /// If it does not answer.
    fn summary(&self) -> Result<Summary, WatchError>;

    /// A page of its objects of one kind.
    ///
    /// # Errors
    /// If they can't be sorted so, or it does not answer.
    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, WatchError>;

    /// What is scheduled, and what has happened behind the entry of the log with this number.
    ///
    /// # Errors
    /// If it does not answer.
    fn events(&self, after: u64) -> Result<EventPage, WatchError>;

    /// A router's programs, with their budget.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    fn programs(&self, router: &str) -> Result<Value, WatchError>;

    /// The description of its API, which has the settings of every kind.
    ///
    /// # Errors
    /// If it does not answer.
    fn description(&self) -> Result<Value, WatchError>;

    /// Changes an object: all settings, or none.
    ///
    /// # Errors
    /// The reason, if it refuses.
    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, WatchError>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchError {
    /// In words.
    pub reason: String,
    /// Whether the instance has ended.
    pub gone: bool,
}

impl From<SetError> for WatchError {
    fn from(error: SetError) -> Self {
        Self { reason: error.to_string(), gone: false }
    }
}

/// The run of this process.
pub struct OfProcess(pub Arc<dyn Instance>);

impl WatchedInstance for OfProcess {
    fn links(&self) -> Result<usize, WatchError> {
        Ok(self.0.names(Kind::Link).len())
    }

    fn summary(&self) -> Result<Summary, WatchError> {
        Ok(self.0.summary()?)
    }

    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, WatchError> {
        Ok(self.0.page(kind, choice)?)
    }

    fn events(&self, after: u64) -> Result<EventPage, WatchError> {
        Ok(self.0.events(EventQuery { after, planned: true }))
    }

    fn programs(&self, router: &str) -> Result<Value, WatchError> {
        Ok(self.0.forwarders(router, &ProgramRequest::List)?)
    }

    fn description(&self) -> Result<Value, WatchError> {
        Ok(document(|kind| self.0.settable(kind)))
    }

    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, WatchError> {
        Ok(self.0.set(kind, name, changes)?.wait()?)
    }
}

/// Another process's, through its control socket.
impl WatchedInstance for Client {
    fn links(&self) -> Result<usize, WatchError> {
        self.instance().map(|info| info.links).map_err(|error| failed(self, &error))
    }

    fn summary(&self) -> Result<Summary, WatchError> {
        Self::summary(self).map_err(|error| failed(self, &error))
    }

    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, WatchError> {
        Self::page(self, kind, choice).map_err(|error| failed(self, &error))
    }

    fn events(&self, after: u64) -> Result<EventPage, WatchError> {
        Self::events(self, after).map_err(|error| failed(self, &error))
    }

    fn programs(&self, router: &str) -> Result<Value, WatchError> {
        self.forwarders(router, &ProgramRequest::List).map_err(|error| failed(self, &error))
    }

    fn description(&self) -> Result<Value, WatchError> {
        Self::description(self).map_err(|error| failed(self, &error))
    }

    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, WatchError> {
        Self::set(self, Some(kind), name, changes).map_err(|error| failed(self, &error))
    }
}

fn failed(client: &Client, error: &ClientError) -> WatchError {
    let gone = matches!(error, ClientError::Silent { .. }) && client.has_ended();
    WatchError { reason: error.to_string(), gone }
}
