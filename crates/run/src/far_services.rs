//! Services at the far end: started before the command, ended after it.

use anyhow::{anyhow, bail};
use longwire_lab::{Attendant, BindGuard, ExecNet, FarIpv6, GuardedCommand, Host, Service, User};
use std::io;
use std::net::IpAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time for a service to open a port before the command is started without it.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Services that run until dropped.
#[derive(Debug, Default)]
pub struct Services {
    running: Vec<Service>,
}

impl Services {
    /// Starts each with `sh` at the far end, as `user` if one is given, and waits until it listens; `say`
    /// receives a message if one does not. After a signal, no more are started or waited for. In the
    /// machine's own network they are restricted to the far end's addresses.
    ///
    /// # Errors
    /// If one can't be started, or not be restricted, or ends at once.
    pub fn start(
        commands: &[String],
        user: Option<&User>,
        net: &ExecNet,
        attendant: &Attendant,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let guard = bind_guard(net)?;
        let mut services = Self::default();
        for command in commands {
            if attendant.early().is_some() {
                break;
            }
            let before = net.far().listening_sockets()?;
            let mut shell = net.far_command("sh")?;
            let guarded = guard.map(|guard| guard.restrict(&mut shell)).transpose();
            let guarded = guarded.map_err(|error| unrestricted(command, error))?;
            // A service's output must not mix with the command's.
            shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
            let mut service = Service::start(&mut shell, user).map_err(|error| {
                match guarded.as_ref().and_then(GuardedCommand::refusal) {
                    Some(refusal) => unrestricted(command, refusal),
                    None => anyhow!(error).context(format!("the service `{command}` can't be started")),
                }
            })?;
            if let Some(guarded) = guarded {
                guarded.started().map_err(|error| unrestricted(command, error))?;
            }
            if takes_too_long(&mut service, net.far(), before, command, attendant)? {
                say(&format!("the service `{command}` has opened no port within {PATIENCE:?}; going on"));
            }
            services.running.push(service);
        }
        Ok(services)
    }
}

/// Restricts services in the machine's own network to the far end.
fn bind_guard(net: &ExecNet) -> anyhow::Result<Option<BindGuard>> {
    let (IpAddr::V4(v4), true) = (net.far_address(), net.far_is_machine()) else { return Ok(None) };
    let v6 = match net.far_ipv6_address() {
        Some(IpAddr::V6(address)) => Some(FarIpv6 { address, interface: net.far_interface()? }),
        _ => None,
    };
    Ok(Some(BindGuard { v4, v6 }))
}

/// The error for a service that can't be restricted.
fn unrestricted(command: &str, why: io::Error) -> anyhow::Error {
    anyhow!(why).context(format!(
        "the service `{command}` was not started, since it can't be kept from listening on every address of \
         this machine; with --private it has a network of its own"
    ))
}

/// Waits until a service listens, or a signal ends the run. Returns whether neither happens in time.
fn takes_too_long(
    service: &mut Service,
    far: &Host,
    before: usize,
    command: &str,
    attendant: &Attendant,
) -> anyhow::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if attendant.early().is_some() || far.listening_sockets()? > before {
            return Ok(false);
        }
        // A signal to both may have ended it.
        if let Some(status) = service.ended()?
            && attendant.early().is_none()
        {
            bail!("the service `{command}` ended at once ({status}); what it wrote is above");
        }
        std::thread::sleep(LOOK);
    }
    Ok(attendant.early().is_none())
}
