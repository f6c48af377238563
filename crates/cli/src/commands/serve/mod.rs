//! `longwire serve`

mod event_log;
mod group;
mod notify;
mod scenarios;
mod served;
mod state;

use crate::Outcome;
use anyhow::Context;
use event_log::{EventLog, Format};
use longwire_control::{Tls, TlsFiles, Tokens, Web, WebAddress, WebError};
use longwire_lab::{CommandRole, keep_for};
use longwire_run::test_hosts::sweep;
use longwire_rundir::StopSignals;
use notify::Manager;
use scenarios::ScenarioArg;
use served::{PreparedScenario, ServedScenario};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Run scenarios as a service, until it is stopped
///
/// One process runs all scenarios, each with its own name, and writes a log with a line for each event.
/// longwire ctl shows and changes them as it does those of longwire run. SIGHUP reads the files again and
/// applies them; SIGTERM and SIGINT end the service. Under systemd it reports when it is ready, and answers
/// the watchdog while the workers do.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire serve scenarios/two-hosts.toml
  longwire serve dsl=access.toml core.toml --log-format json
  longwire serve scenarios/two-hosts.toml --listen 8399
  longwire serve core.toml --listen 192.0.2.1:8399 --tokens tokens --tls-cert my.pem --tls-key my.key
  longwire serve a.toml --listen 8399 --tokens tokens --tls-cert my.pem --tls-key my.key --tls-clients ca.pem
  longwire serve /etc/longwire --group longwire --state /var/lib/longwire")]
pub struct Args {
    /// The scenarios: a file, NAME=FILE to name it, or a folder for all its files that end in .toml. Default
    /// name: the file's.
    #[arg(required = true, value_name = "[NAME=]FILE")]
    scenarios: Vec<ScenarioArg>,

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
    /// the same. Default: STATE_DIRECTORY of the environment, which systemd sets; without it nothing is kept.
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,

    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: Format,
}

/// Interval between checks of the scenarios.
const LOOK: Duration = Duration::from_millis(50);

impl Args {
    /// Runs the scenarios until a signal comes, or all have been stopped.
    ///
    /// # Errors
    /// If a scenario has errors or can't be started; then none runs.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let log = Arc::new(EventLog::new(self.log_format));
        let group = self.group.as_deref().map(group::group_id).transpose()?;
        let mut manager = Manager::from_environment().context("the service manager's NOTIFY_SOCKET")?;
        let folder = state::folder(self.state.as_deref());
        let web = self.web()?;
        let mut prepared = Vec::new();
        for named in scenarios::named(&self.scenarios)? {
            // Before the first thread, since it may enter a user namespace.
            prepared.push(PreparedScenario::new(named, folder.as_deref(), &log)?);
        }
        let duty = if group.is_some() { CommandRole::ServesGroup } else { CommandRole::Carries };
        keep_for(duty).context("giving up what root need not keep")?;
        let reload = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload)).context("catching SIGHUP")?;
        let signals = StopSignals::catch_these(&[SIGINT, SIGTERM]).context("catching signals")?;
        sweep()?;
        let mut all = Vec::new();
        for (place, one) in (0u16..).zip(prepared) {
            let of_one = |web: &Web| -> Result<Web, WebError> {
                Ok(Web { address: web.address.behind(place)?, ..web.clone() })
            };
            let web = web.as_ref().map(of_one).transpose()?;
            all.push(one.start(group, web, &log)?);
        }
        log.info("ready", &[("scenarios", all.len().into()), ("pid", std::process::id().into())]);
        manager.ready(&status(&all));
        let outcome = watch(&mut all, (&signals, &reload, web.as_ref()), &mut manager, &log);
        manager.stopping();
        all.iter_mut().for_each(|served| served.stop(&log));
        Ok(outcome)
    }
}

impl Args {
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

/// Waits for a signal, the failure of a scenario, or the end of all.
fn watch(
    all: &mut [ServedScenario],
    (signals, reload, web): (&StopSignals, &AtomicBool, Option<&Web>),
    manager: &mut Manager,
    log: &EventLog,
) -> Outcome {
    while !signals.within(LOOK) {
        if reload.swap(false, Ordering::Relaxed) {
            manager.reloading();
            if let Some(error) = web.and_then(|web| web.read_again().err()) {
                log.error("access-not-reloaded", &[("error", error.to_string().into())]);
            }
            all.iter().for_each(|served| served.read_again(log));
            manager.ready(&status(all));
        }
        if all.iter().any(ServedScenario::is_broken) {
            // The service manager restarts it.
            return Outcome::Failed;
        }
        if let Some(stopped) = all.iter_mut().find(|served| served.is_asked_to_stop()) {
            stopped.stop(log);
            manager.ready(&status(all));
        }
        if !all.iter().any(ServedScenario::runs) {
            return Outcome::Well;
        }
        if manager.is_due() && all.iter().all(ServedScenario::answers) {
            manager.alive();
        }
    }
    log.info("stopping", &[]);
    Outcome::Well
}

/// A line about the service, for the service manager.
fn status(all: &[ServedScenario]) -> String {
    let names: Vec<&str> = all.iter().filter(|served| served.runs()).map(ServedScenario::name).collect();
    match names.len() {
        0..=8 => format!("running {}", names.join(", ")),
        count => format!("running {count} scenarios"),
    }
}
