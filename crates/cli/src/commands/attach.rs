//! `longwire attach`

use super::exec::link::{LARGEST_MTU, LEAST_MTU, LinkArgs, LinkEnds};
use crate::Outcome;
use crate::foreground::{Foreground, Wiring};
use anyhow::{Context, anyhow, ensure};
use longwire_drivers::HostDriver;
use longwire_lab::{
    Attachment, CommandRole, FindError, FoundNamespace, Interface, NamespaceSelector, abilities, keep_for,
};
use longwire_run::outlook::outlook;
use longwire_run::real_run::RealRun;
use longwire_run::test_hosts::{TestHosts, sweep};
use longwire_rundir::StopSignals;
use std::path::PathBuf;
use std::time::Duration;

/// Put a link on the interface of a container, or of any namespace, that already runs
///
/// Everything that the interface sends and receives crosses the link, until the command ends. The interface
/// keeps its name, addresses and routes, and programs keep their connections. Up is what it sends, down is
/// what it receives. Needs root, and Linux 6.6 or newer.
///
/// If this process is killed, the kernel removes the link at once; the two interfaces made beside the other
/// one are removed by the next run, or by `longwire lab down --all`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire attach --container web --profile 3g
  longwire attach --netns blue --delay 40ms --loss 1%
  longwire attach --pid 4711 --interface eth1 --rate 10mbit --up rate=1mbit --for 5min
  longwire attach --container db --delay 20ms --json --for 30s

While it runs, `longwire ctl set up delay=80ms` changes the link, and `longwire ctl stats` shows it.")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// The interface.
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    interface: String,

    #[command(flatten)]
    link: Box<LinkArgs>,

    #[command(flatten)]
    foreground: Foreground,
}

/// Selects the namespace.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// A network namespace by its name, as `ip netns list` shows it, or by its path.
    #[arg(long, value_name = "NAME")]
    netns: Option<PathBuf>,

    /// The network namespace of a process.
    #[arg(long, value_name = "NUMBER")]
    pid: Option<u32>,

    /// The network namespace of a container of Podman or Docker, by its name or its ID.
    #[arg(long, value_name = "ID")]
    container: Option<String>,
}

impl Args {
    /// Keeps the link on the interface, and reports on it.
    ///
    /// # Errors
    /// If there is no such namespace or interface, or the system forbids it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let can = abilities();
        ensure!(
            can.root.available && can.namespaces.available,
            "a link can't be put on an interface that others have made: {}; {}",
            can.root.reason,
            can.namespaces.reason
        );
        let found = self.target.find()?;
        let name = &self.interface;
        let of = |error| anyhow!("{}: {error}", found.name);
        let interface = found.namespace.run(|| Interface::find(name)).and_then(|found| found).map_err(of)?;
        let mtu = interface.mtu().clamp(LEAST_MTU, LARGEST_MTU);
        let plan = self.link.plan("attach", self.foreground.seed, LinkEnds::Hosts { mtu })?;
        self.link.notes().iter().for_each(|note| self.foreground.say(&format!("--netem: {note}")));
        let outlook = outlook(&plan, "round trips grow by");
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        // From here on a signal while the ends are made leaves nothing behind.
        let signals = StopSignals::catch().context("catching signals")?;
        sweep()?;
        let instance = format!("attach-{}", std::process::id());
        let created =
            found.namespace.run(|| Attachment::create(&instance, interface)).and_then(|created| created);
        let hosts = TestHosts::Attached(created.map_err(of)?);
        let run = self.foreground.start(instance, plan, Wiring::Hosts(Box::new(hosts), HostDriver::VETH))?;
        let attachment = attached(&run)?;
        let diversion = attachment.divert().map_err(of)?;
        self.foreground.say(&format!("a link is on {name} of {}; Ctrl-C takes it off", found.name));
        outlook.iter().for_each(|what| self.foreground.say(what));
        let over = self.foreground.wait(&run, &signals, || over(&found, attachment));
        if diversion.let_pass().is_ok() {
            run.drain(PATIENCE);
        }
        drop(diversion);
        let ended = run.stop();
        let own = [("namespace", found.name), ("interface", self.interface)];
        self.foreground.report("attach", ended, &own, over)
    }
}

fn attached(run: &RealRun) -> anyhow::Result<&Attachment> {
    match run.hosts() {
        Some(TestHosts::Attached(attachment)) => Ok(attachment),
        _ => Err(anyhow!("the two ends are not up")),
    }
}

/// Time for packets in flight to leave the link, so that removing it loses none.
const PATIENCE: Duration = Duration::from_secs(2);

/// The reason why the link has to end, if any.
fn over(found: &FoundNamespace, attachment: &Attachment) -> Option<String> {
    if !found.is_there() {
        return Some(format!("{} has ended", found.name));
    }
    (!attachment.is_there()).then(|| format!("the interface of {} is gone", found.name))
}

impl Target {
    fn find(self) -> Result<FoundNamespace, FindError> {
        FoundNamespace::find(&match self {
            Self { netns: Some(netns), .. } => NamespaceSelector::Name(netns),
            Self { container: Some(id), .. } => NamespaceSelector::Container(id),
            Self { pid, .. } => NamespaceSelector::Process(pid.unwrap_or_default()),
        })
    }
}
