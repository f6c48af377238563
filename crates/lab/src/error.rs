//! Errors of labs.

use std::io;
use std::path::PathBuf;

/// An error of a lab: names the operation, its object, and the fix.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A lab's or host's name is not valid for a namespace or host.
    #[error("{what} name \"{name}\": {reason}")]
    Name {
        /// "lab" or "host".
        what: &'static str,
        /// The name as given.
        name: String,
        /// The fault and its fix.
        reason: &'static str,
    },
    /// A field of a host can't be used as it is.
    #[error("host {host}, {field}: {reason}")]
    Host {
        /// The host's name.
        host: String,
        /// The field of [`crate::HostSpec`].
        field: &'static str,
        /// The fault and its fix.
        reason: String,
    },
    /// A lab of this name is already up.
    #[error(
        "lab {instance} is up already ({owner}); take it down with `longwire lab down {instance}`, or choose \
         another name"
    )]
    InUse {
        /// The lab's name.
        instance: String,
        /// Description of its owner.
        owner: String,
    },
    /// A namespace that the lab would create exists and belongs to no lab.
    #[error(
        "network namespace {0} exists and is not this lab's; remove it with `ip netns del {0}`, or choose \
         another name"
    )]
    NamespaceExists(String),
    /// There is no lab of this name.
    #[error("no lab {0} is up; `longwire lab list` shows those that are")]
    UnknownLab(String),
    /// The lab has no such host.
    #[error("lab {instance} has no host \"{host}\"; it has {known}")]
    UnknownHost {
        /// The lab's name.
        instance: String,
        /// The requested name.
        host: String,
        /// The names of its hosts, separated by commas.
        known: String,
    },
    /// A system call was refused.
    #[error("{doing}: {source}{}", fix(source))]
    System {
        /// The operation and its object.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another process is creating or removing labs.
    #[error(transparent)]
    Lock(#[from] longwire_rundir::LockError),
    /// A state file is invalid.
    #[error("{}: {reason}; if no such lab runs, delete this file's folder", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Its fault.
        reason: String,
    },
    /// A link can't be attached to an interface.
    #[error("interface {interface}: {reason}")]
    Interface {
        /// Its name.
        interface: String,
        /// The reason, and the fix.
        reason: String,
    },
    /// Every candidate network for the far end is in use.
    #[error(
        "no free network of four addresses in 100.64.0.0/10, 10.0.0.0/8 or 198.18.0.0/15: remove routes that \
         cover them"
    )]
    NoFreeNetwork,
    /// A program that carries packets for a user failed.
    #[error("{program} {reason}")]
    UserNetwork {
        /// The program.
        program: &'static str,
        /// The failure.
        reason: &'static str,
    },
    /// There is no such user.
    #[error("there is no user \"{0}\" on this machine; `getent passwd` lists those that there are")]
    UnknownUser(String),
    /// A user namespace can't be entered.
    #[error("no user namespace: {reason}")]
    UserNamespace {
        /// The reason, and the fix.
        reason: String,
    },
}

/// The outcome of an operation on a lab.
pub(crate) type Result<T, E = LabError> = std::result::Result<T, E>;

impl LabError {
    /// For `map_err`: a failed system call and its purpose.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

/// The fix of common refusals.
fn fix(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (run as root, or on a system that allows user namespaces)",
        _ => "",
    }
}
