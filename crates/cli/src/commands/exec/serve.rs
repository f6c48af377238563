//! Services at the far end: started before the command, ended after it.

use anyhow::{Context, bail};
use longwire_lab::{BindGuard, ExecNet, Host, Service, User};
use std::io;
use std::net::IpAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time for a service to open a port before the command is started without it.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Services that run until dropped.
#[derive(Debug)]
pub struct Services {
    running: Vec<Service>,
    // Dropped after the services: the group can be removed when it is empty.
    guard: Option<BindGuard>,
}

impl Services {
    /// Starts each with `sh` at the far end, as `user` if one is given, and waits until it listens; `say`
    /// receives a message if one does not.
    pub fn start(
        commands: &[String],
        user: Option<&User>,
        net: &ExecNet,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let mut services = Self { running: Vec::new(), guard: bind_guard(commands, net, say) };
        for command in commands {
            let before = net.far().listening_sockets()?;
            let mut shell = net.far_command("sh")?;
            if let Some(guard) = &services.guard {
                guard.admit(&mut shell)?;
            }
            // A service's output must not mix with the command's.
            shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
            let mut service = Service::start(&mut shell, user)
                .with_context(|| format!("the service `{command}` can't be started"))?;
            if !wait_until_it_listens(&mut service, net.far(), before, command)? {
                say(&format!("the service `{command}` has opened no port within {PATIENCE:?}; going on"));
            }
            services.running.push(service);
        }
        Ok(services)
    }
}

/// Restricts services in the machine's own network to the far end's address; `say` receives a message if that
/// is impossible.
fn bind_guard(commands: &[String], net: &ExecNet, say: &dyn Fn(&str)) -> Option<BindGuard> {
    let IpAddr::V4(address) = net.far_address() else { return None };
    if commands.is_empty() || !net.far_is_machine() {
        return None;
    }
    let guard = BindGuard::new(&format!("exec-{}", std::process::id()), address);
    let told = |error: &io::Error| {
        say(&format!(
            "what --serve starts may listen on every address of this machine ({error}); bind it to \
             $LONGWIRE_FAR, or use --private"
        ));
    };
    guard.inspect_err(told).ok()
}

fn wait_until_it_listens(
    service: &mut Service,
    far: &Host,
    before: usize,
    command: &str,
) -> anyhow::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if far.listening_sockets()? > before {
            return Ok(true);
        }
        if let Some(status) = service.ended()? {
            bail!("the service `{command}` ended at once ({status}); what it wrote is above");
        }
        std::thread::sleep(LOOK);
    }
    Ok(false)
}
