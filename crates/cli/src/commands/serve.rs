//! `longwire serve`

use crate::Outcome;
use crate::record_args::RecordArgs;
use longwire_control::{Tls, TlsFiles, Tokens, Web, WebAddress};
use longwire_service::{AgentOptions, Format, ScenarioArg, ServiceOptions, group_id, serve, serve_agent};
use std::path::PathBuf;
use std::sync::Arc;

/// Run scenarios as a service, until it is stopped
///
/// One process runs all scenarios, each with its own name, and writes a log with a line for each event.
/// longwire ctl shows and changes them as it does those of longwire run. SIGHUP reads the files again and
/// applies them; SIGTERM and SIGINT end the service. Under systemd it reports when it is ready, and answers
/// the watchdog while the workers do.
///
/// Of the files that it records, each scenario's begin with its name: --log logs/packets.lwlog means
/// logs/NAME-packets.lwlog.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire serve scenarios/two-hosts.toml
  longwire serve dsl=access.toml core.toml --log-format json
  longwire serve scenarios/two-hosts.toml --listen 8399
  longwire serve core.toml --listen 192.0.2.1:8399 --tokens tokens --tls-cert my.pem --tls-key my.key
  longwire serve a.toml --listen 8399 --tokens tokens --tls-cert my.pem --tls-key my.key --tls-clients ca.pem
  longwire serve /etc/longwire --group longwire --state /var/lib/longwire
  longwire serve access.toml core.toml --log logs/packets.lwlog --file-size 100MB --file-count 10
  longwire serve --agent /var/lib/longwire --listen 192.0.2.1:8399 --tokens tokens \
      --tls-cert my.pem --tls-key my.key --tls-clients ca.pem")]
pub struct Args {
    /// The scenarios: a file, NAME=FILE to name it, or a folder for all its files that end in .toml. Default
    /// name: the file's.
    #[arg(required_unless_present = "agent", value_name = "[NAME=]FILE")]
    scenarios: Vec<ScenarioArg>,

    /// Run what clients with the scope install send to --listen, instead of scenarios of this machine: parts
    /// of a cluster. Their files are kept in this directory while they run.
    #[arg(long, value_name = "DIRECTORY", requires = "listen", requires = "tokens",
        conflicts_with_all = ["scenarios", "state", "records"])]
    agent: Option<PathBuf>,

    /// Let a group's members use the API: its name or number. Default: only this user.
    #[arg(long)]
    group: Option<String>,

    /// Serve the dashboard, the API and metrics on TCP: a port, or an address of this machine and a port. Of
    /// several scenarios, each has the port behind that of the one before. Default: only on Unix sockets.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<WebAddress>,

    /// Let those who bear a token of this file use what --listen serves, and those with a certificate that it
    /// names. Each line is a scope (read, steer or install) and a token, or name:NAME or sha256:FINGERPRINT
    /// of a certificate; nobody but its owner may read the file. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", requires = "listen")]
    tokens: Option<PathBuf>,

    /// Serve --listen by TLS 1.3, with this certificate and those that lead to its authority (PEM). SIGHUP
    /// reads it again.
    #[arg(long, value_name = "FILE", requires = "listen", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Let in only clients with a certificate that one of these authorities has signed (PEM). What they may
    /// do is in the file of --tokens.
    #[arg(long, value_name = "FILE", requires = "tls_cert", requires = "tokens")]
    tls_clients: Option<PathBuf>,

    /// Let tokens cross a network without TLS: one that encrypts, as WireGuard does, or that nobody else
    /// uses.
    #[arg(long, requires = "tokens", conflicts_with = "tls_cert")]
    cleartext: bool,

    /// Keep what runs in this directory, and start from that the next time, as long as the scenario's file is
    /// the same, or was applied as it is. Default: STATE_DIRECTORY of the environment, which systemd sets;
    /// without it nothing is kept.
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,

    #[command(flatten)]
    records: RecordArgs,

    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: Format,
}

impl Args {
    /// Runs the scenarios until a signal comes, or all have been stopped.
    ///
    /// # Errors
    /// If a scenario has errors or can't be started; then none runs.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let group = self.group.as_deref().map(group_id).transpose()?;
        let web = self.web()?;
        let records = self.records.options()?;
        let Self { scenarios, agent, state, log_format, .. } = self;
        if let (Some(folder), Some(web)) = (agent, web.clone()) {
            serve_agent(AgentOptions { folder, group, web, log_format })?;
            return Ok(Outcome::of(true));
        }
        serve(ServiceOptions { scenarios, group, web, state, records, log_format }).map(Outcome::of)
    }

    /// Where it serves on TCP, and whom.
    fn web(&self) -> anyhow::Result<Option<Web>> {
        let Some(address) = self.listen else { return Ok(None) };
        let tokens = self.tokens.as_deref().map(Tokens::read).transpose()?.map(Arc::new);
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                let (certificate, key) = (certificate.clone(), key.clone());
                Some(Arc::new(Tls::read(TlsFiles { certificate, key, clients: self.tls_clients.clone() })?))
            }
            _ => None,
        };
        let web = Web { address, tokens, tls, is_cleartext_safe: self.cleartext };
        web.check()?;
        Ok(Some(web))
    }
}
