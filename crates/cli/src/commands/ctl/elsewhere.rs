//! Which instance `longwire ctl`, `longwire top` and `longwire forwarder` mean: one of this machine, or one
//! that is served elsewhere.

use crate::Json;
use anyhow::{bail, ensure};
use longwire_control::{Client, RemoteFiles, RemoteInstance, RemoteUrl, directory};
use std::path::PathBuf;

// Of each argument, since one of the whole would apply to arguments after these, too.
const HEADING: &str = "An instance on another machine";

/// The instance of this machine, and the form of the answer.
#[derive(Debug, clap::Args)]
pub struct InstanceArgs {
    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    pub instance: Option<String>,

    #[command(flatten)]
    pub json: Json,
}

/// The instance of this machine, as the last argument or as the option of other commands.
#[derive(Debug, clap::Args)]
pub struct InstanceName {
    /// The instance, by name, process number or both (name-number).
    name: Option<String>,

    /// The instance, named as in other commands.
    #[arg(long, conflicts_with = "name")]
    instance: Option<String>,
}

impl InstanceName {
    /// The name, if one is given.
    pub fn get(&self) -> Option<&str> {
        self.name.as_deref().or(self.instance.as_deref())
    }
}

/// An instance that `longwire serve --listen` serves on TCP, instead of one of this machine.
#[derive(Debug, clap::Args)]
pub struct Elsewhere {
    /// Use the instance that is served at this address: https://HOST:PORT, or http:// to this machine.
    #[arg(long, global = true, value_name = "URL", help_heading = HEADING)]
    remote: Option<RemoteUrl>,

    /// The authorities that sign the server's certificate, or that certificate (PEM).
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    ca: Option<PathBuf>,

    /// The certificate to show the server (PEM).
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    cert: Option<PathBuf>,

    /// The key of that certificate (PEM).
    // Other commands have arguments of the name "key".
    #[arg(id = "client_key", long = "key", global = true, value_name = "FILE", help_heading = HEADING)]
    key: Option<PathBuf>,

    /// A file with the token to send.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    token: Option<PathBuf>,
}

impl Elsewhere {
    /// Selects the instance: the remote one, or the one of this machine with this name, or the only one.
    ///
    /// # Errors
    /// If there is none, the name is ambiguous, or a file can't be used.
    pub fn connect(&self, name: Option<&str>) -> anyhow::Result<Client> {
        if let (Some(_), Some(name)) = (&self.remote, name) {
            bail!("--remote says which instance: leave out \"{name}\"");
        }
        match self.remote()? {
            Some(client) => Ok(client),
            None => Ok(Client::connect(&directory(), name)?),
        }
    }

    /// The client of the remote instance, if one is meant.
    ///
    /// # Errors
    /// If a file can't be used, or what is for an instance elsewhere is given without one.
    pub fn remote(&self) -> anyhow::Result<Option<Client>> {
        let Self { remote, ca, cert, key, token } = self;
        let Some(url) = remote else {
            let is_alone = [ca, cert, key, token].into_iter().all(Option::is_none);
            ensure!(
                is_alone,
                "--ca, --cert, --key and --token are for an instance elsewhere: add --remote URL"
            );
            return Ok(None);
        };
        let (ca, certificate) = (ca.clone(), cert.clone());
        let files = RemoteFiles { ca, certificate, key: key.clone(), token: token.clone() };
        Ok(Some(Client::of_remote(RemoteInstance::new(url.clone(), &files)?)?))
    }
}
