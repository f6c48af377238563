//! `longwire exec`

pub(super) mod link;
pub(super) mod not_started;
mod outputs;
mod own_settings;
mod usage_error;

use crate::record_args::RecordArgs;
use crate::record_warnings::watched;
use crate::{Outcome, json, outcome};
use anyhow::{Context, ensure};
use link::LinkArgs;
use longwire_lab::{
    Attendant, CommandRole, ExecNet, ExecSpec, FarEnd, Localhost, LoopbackServices, OutsideSockets, OwnUser,
    Ports, PublishedPorts, SocketNetwork, User, UserNetwork, abilities, can_forward, enter_user_namespace,
    exit_code, keep_for, may_change_user, may_make_hosts, restore_open_files, taps, way_out_mtu,
};
use longwire_run::far_services::Services;
use longwire_run::fitted::fit_pool;
use longwire_run::outlook::outlook;
use longwire_run::port_files::check_apart;
use longwire_run::real_run::{RealOptions, RealRun, RealRunOutcome};
use longwire_run::test_hosts::{TestHosts, sweep, usual_driver, wiring};
use longwire_run::verdict;
use not_started::{CommandEnd, not_started, program};
use outputs::{Outputs, is_shared, is_standard_error};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::Receiver;
pub use usage_error::write_usage_error;

/// The exit status if the link could not be made.
const NO_LINK: u8 = 2;
/// The exit status of a successful command if the emulation had to be faithful and was not.
const NOT_FAITHFUL: u8 = 3;

/// Run a command behind an emulated link to this machine's network
///
/// The command reaches everything it reached before, names included, through a link with the bandwidth, delay
/// and loss you choose. Any program works unmodified: a browser, a test suite, a shell. Its exit code,
/// terminal and signals are kept.
///
/// As root the far end of the link is this machine, which forwards packets under its own addresses. Without
/// root, pasta (package passt) or slirp4netns carries them, if installed; else the far end is a separate host
/// with what --serve starts there. In all cases its name is $LONGWIRE_FAR in the command, which runs as you.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire exec --rate 4mbit --delay 60ms --loss 1% -- pytest tests/
  longwire exec --profile lte -- npx playwright test
  longwire exec --profile geo --loss 0.5% -- ping -c 3 1.1.1.1
  longwire exec --rate 10mbit --up rate=1mbit,queue=50ms -- curl -O https://example.org/big
  longwire exec --netem 'delay 100ms 20ms distribution normal loss gemodel 1% 25%' -- ping -c 3 1.1.1.1
  longwire exec --trace-down lte.down --trace-up lte.up --delay 20ms -- curl -O https://example.org/big
  longwire exec --delay 40ms --jitter 8ms --reorder 1% --duplicate 0.1% --corrupt 0.1% -- ./client
  longwire exec --profile wifi-lossy --require-faithful --record run.pcapng -- pytest tests/
  sudo longwire exec --user $USER --profile lte -- npm test
  longwire exec --profile lte --log lte.pcapng -- curl -O https://example.org/big
  longwire exec --delay 20ms --localhost -- curl http://localhost:8000/
  longwire exec --rate 1mbit --localhost=5432 --publish 8000 -- ./server --listen 127.0.0.1:8000
  longwire exec --delay 100ms                                      a shell
  longwire exec --delay 20ms --serve 'python3 -m http.server 8000' -- sh -c 'curl http://$LONGWIRE_FAR:8000/'

Exit status: the command's; 128 and the signal's number if a signal ended it; 127 if there is no such \
command; 2 if the link could not be made; 3 with --require-faithful, if the command succeeded and the \
emulation was not faithful.")]
pub struct Args {
    #[command(flatten)]
    link: Box<LinkArgs>,

    /// Largest IP packet at both ends, in bytes. Default: that of the interface by which packets leave this
    /// machine, else 1500.
    #[arg(long, value_name = "BYTES", value_parser = link::mtu)]
    mtu: Option<u32>,

    /// Start a service at the far end, with sh; repeatable. The command starts when the service listens.
    #[arg(long, value_name = "COMMAND")]
    serve: Vec<String>,

    /// Reach services of this machine's loopback as localhost, through the link: those at these ports
    /// (8000,5432,9000-9010), or all that listen.
    #[arg(long, value_name = "PORTS", num_args = 0..=1, require_equals = true, default_missing_value = "all",
        conflicts_with = "private")]
    localhost: Option<LoopbackServices>,

    /// Have these ports of this machine's loopback lead to the command's localhost, through the link: a
    /// server that the command runs is reached from outside.
    #[arg(long, value_name = "PORTS", conflicts_with = "private")]
    publish: Option<Ports>,

    /// Make the far end a separate host even as root: only what --serve starts can be reached.
    #[arg(long)]
    private: bool,

    /// Run the command as this user, with its rights, groups and home. Takes root; without, the command runs
    /// as you in any case. What --serve starts keeps your rights, unless --serve-user says otherwise.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Run what --serve starts as this user. Takes root.
    #[arg(long, value_name = "NAME", requires = "serve")]
    serve_user: Option<String>,

    /// Seed of losses: the same seed loses the same packets.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Write the report as JSON to a file. Default, or with "-": standard error.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,

    /// Fail if the emulation was not faithful, or nothing crossed the link: exit with 3 where the command
    /// exits with 0.
    #[arg(long)]
    require_faithful: bool,

    #[command(flatten)]
    records: RecordArgs,

    /// Write messages to a file instead of standard error.
    #[arg(long, value_name = "FILE", conflicts_with = "quiet")]
    messages: Option<PathBuf>,

    /// Print more: the settings of the link, and the whole verdict.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,

    /// Print only errors.
    #[arg(long, short)]
    quiet: bool,

    #[arg(skip)]
    outputs: Outputs,

    // The file of `messages`.
    #[arg(skip)]
    opened: Option<File>,

    // Why messages are missing there.
    #[arg(skip)]
    unwritten: OnceLock<String>,

    /// The command and its arguments. Default: your shell.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The two ends, and how they reach the outside.
struct ExecEnds {
    far: FarEnd,
    /// The user, if this process is root in a namespace only.
    own_user: Option<OwnUser>,
    /// The user-mode network of such a user, for the whole run.
    network: Option<UserNetwork>,
    /// Makes sockets of this machine's network.
    machine: SocketNetwork,
}

/// Users other than this one.
struct Users {
    command: Option<User>,
    services: Option<User>,
}

/// What is reached on the loopback from the other side of the link.
struct Loopback {
    published: PublishedPorts,
    machine: SocketNetwork,
}

impl Args {
    /// Runs the command behind the link and reports on the link.
    ///
    /// # Errors
    /// If the options are wrong, or the link or a service can't be made.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        let apart = match self.check_apart() {
            // The file named twice may be that of the report.
            Err(error) if self.json.as_deref().is_some_and(|file| !is_shared(file)) => return Err(error),
            other => other,
        };
        let users = apart.and_then(|()| self.users());
        self.outputs.user = users.as_ref().ok().and_then(|users| users.command.clone());
        let done = users.and_then(|users| self.run_behind_link(&users));
        let (Err(error), Some(file)) = (&done, &self.json) else { return done };
        self.outputs.report(file, &format!("{:#}", json::of_error(error)))?;
        // There it is printed once, as an object.
        if is_standard_error(file) { Ok(Outcome::Status(NO_LINK)) } else { done }
    }

    /// Checks that no file is written twice, or over one that the link is made of.
    fn check_apart(&self) -> anyhow::Result<()> {
        let read = self.link.files();
        let [log, series, record] = self.records.files();
        let written = [log, series, record, &self.json, &self.messages].into_iter().flatten();
        let own = written.map(PathBuf::as_path).filter(|file| !is_shared(file));
        check_apart(read.iter().map(PathBuf::as_path), own)
    }

    fn run_behind_link(&mut self, users: &Users) -> anyhow::Result<Outcome> {
        let [log, series, record] = self.records.files();
        let mut records = self.records.options()?;
        records.maker.user.clone_from(&self.outputs.user);
        self.outputs.make_for_caller(&[&self.messages, &self.json, log, series, record])?;
        if let Some(file) = &self.json {
            self.outputs.check(file)?;
        }
        if let Some(file) = &self.messages {
            let opened = self.outputs.open(file);
            self.opened = Some(opened.with_context(|| format!("can't write {}", file.display()))?);
        }
        let mtu = self.mtu.unwrap_or_else(|| link::usual_mtu(way_out_mtu()));
        let mut plan = self.link.plan("exec", self.seed, link::LinkEnds::Hosts { mtu })?;
        fit_pool(&mut plan);
        let mut outlook = outlook(&plan, "round trip will be");
        outlook.extend(self.link.notes().iter().map(|note| format!("--netem: {note}")));
        // From here on a signal while the ends are made leaves nothing behind.
        let attendant = Attendant::begin().context("keeping signals for the command")?;
        let published = self.published()?;
        let ExecEnds { far, own_user, network: _network, machine } = self.ends()?;
        let driver = usual_driver();
        // Root of a user namespace has nothing to give up that is worth anything outside.
        if own_user.is_none() {
            keep_for(CommandRole::StartsProgram).context("giving up what root need not keep")?;
        }
        plan.hosts.iter_mut().for_each(|host| host.driver = driver);
        sweep()?;
        let name = format!("exec-{}", std::process::id());
        let spec = ExecSpec { far, wiring: wiring(driver.wire), mtu };
        let net = ExecNet::create(&name, &spec)?;
        let options = RealOptions { name, records, ..RealOptions::default() };
        let mut run = RealRun::start(plan, Some(TestHosts::Exec(net)), options)?;
        let stopped = run.take_stopped();
        outlook.iter().for_each(|what| self.say(what));
        if self.verbose {
            self.say_settings(&run);
        }
        let loopback = Loopback { published, machine };
        let end = self.command_behind((&run, stopped), &attendant, (users, own_user), loopback);
        let ended = run.stop();
        let code = self.report(ended, end?)?;
        Ok(Outcome::Status(code))
    }

    fn users(&self) -> anyhow::Result<Users> {
        let find = |name: &Option<String>| name.as_deref().map(User::find).transpose();
        let users = Users { command: find(&self.user)?, services: find(&self.serve_user)? };
        ensure!(
            (users.command.is_none() && users.services.is_none()) || may_change_user(),
            "--user and --serve-user take root; without, everything runs as you"
        );
        Ok(users)
    }

    /// Takes the ports that --publish names, in this machine's network.
    fn published(&self) -> anyhow::Result<PublishedPorts> {
        let Some(ports) = &self.publish else { return Ok(PublishedPorts::default()) };
        if let Some(LoopbackServices::Listed(reached)) = &self.localhost
            && let Some(port) = reached.shared_with(ports)
        {
            anyhow::bail!(
                "port {port} can't be this machine's and the command's: take it off --localhost or --publish"
            );
        }
        Ok(PublishedPorts::take(ports)?)
    }

    /// The far end, and how both ends reach the outside. Enters a user namespace if hosts are only possible
    /// there, which must happen before a second thread starts.
    fn ends(&self) -> anyhow::Result<ExecEnds> {
        let (own_user, network, machine) = (None, None, SocketNetwork::Here);
        let mut ends = ExecEnds { far: FarEnd::Private, own_user, network, machine };
        if may_make_hosts() {
            if !self.private && can_forward() {
                ends.far = FarEnd::Machine;
            } else if !self.private {
                self.say(
                    "nothing outside can be reached, because forwarding is off and can't be turned on here: \
                     start the container with --sysctl net.ipv4.ip_forward=1, or services at the far end \
                     with --serve",
                );
            }
        } else {
            let can = abilities();
            ensure!(
                can.user_namespaces.available,
                "a link can't be made here: {}; {}",
                can.namespaces.reason,
                can.user_namespaces.reason
            );
            // First, so that the process that is left behind holds nothing of the others.
            if self.localhost.is_some() || self.publish.is_some() {
                let outside = OutsideSockets::stay().context("keeping this machine's sockets at hand")?;
                ends.machine = SocketNetwork::Outside(outside);
            }
            // Started in the network with a way out, before entering one without.
            let network = if self.private { None } else { UserNetwork::prepare()? };
            ends.own_user = Some(enter_user_namespace()?);
            if !self.private {
                self.find_way_out(network, &mut ends);
            }
        }
        Ok(ends)
    }

    /// Starts a user-mode network; reports if there is none.
    fn find_way_out(&self, network: Option<UserNetwork>, ends: &mut ExecEnds) {
        let Some(mut network) = network else {
            return self.say(
                "without root nothing outside can be reached: install pasta (package passt) or slirp4netns, \
                 or start services at the far end with --serve",
            );
        };
        let tap = taps();
        let started =
            if tap.available { network.start().map_err(|e| e.to_string()) } else { Err(tap.reason) };
        match started {
            Ok(()) => {
                ends.far = FarEnd::User { name_server: network.name_server() };
                ends.network = Some(network);
            }
            Err(reason) => self.say(&format!(
                "without root nothing outside can be reached ({reason}); start services at the far end with \
                 --serve"
            )),
        }
    }

    /// Starts the services, and runs the command.
    fn command_behind(
        &self,
        (run, stopped): (&RealRun, Receiver<()>),
        attendant: &Attendant,
        (users, own_user): (&Users, Option<OwnUser>),
        loopback: Loopback,
    ) -> anyhow::Result<CommandEnd> {
        let Some(TestHosts::Exec(net)) = run.hosts() else { anyhow::bail!("the two ends are not up") };
        let user = users.services.as_ref();
        let services = Services::start(&self.serve, user, net, attendant, &|what| self.say(what))?;
        let mut localhost = None;
        if self.localhost.is_some() || self.publish.is_some() {
            let Loopback { published, machine } = loopback;
            localhost = Some(Localhost::start(net, self.localhost.as_ref(), published, machine)?);
        }
        if let Some(signal) = attendant.early() {
            // Signal numbers are below 65.
            return Ok(CommandEnd { code: 128 + signal as u8, fault: None });
        }
        let user = users.command.as_ref();
        let shell = user.map_or_else(|| std::env::var_os("SHELL"), |user| user.shell().cloned());
        let (program, arguments) = program(&self.command, shell);
        if self.command.is_empty() && io::stdin().is_terminal() {
            self.say(&format!(
                "a shell behind the link; the far end is {}; leave with exit",
                net.far_address()
            ));
        }
        let mut command: Command = net.command(&program)?;
        if let Some(user) = user {
            user.take_over(&mut command);
        }
        if let Some(own_user) = own_user {
            own_user.give_back(&mut command);
        }
        restore_open_files(&mut command);
        let faults = run.instance().record_faults();
        let look = move || {
            faults.take_new().iter().for_each(|fault| self.tell(fault));
            if stopped.try_recv().is_ok() {
                attendant.end();
            }
        };
        let ended = watched(look, || attendant.run(command.args(arguments)));
        drop((localhost, services));
        let end = match ended {
            Ok(status) => CommandEnd { code: exit_code(status), fault: None },
            Err(error) => {
                let mut end = not_started(&program, user, &error);
                end.fault = end.fault.map(|fault| fault + &self.meant(&program.to_string_lossy()));
                end
            }
        };
        end.fault.iter().for_each(|fault| self.tell_failure(fault));
        Ok(end)
    }

    /// Says how faithful it was, writes the report, and answers the exit code.
    fn report(&self, ended: RealRunOutcome, end: CommandEnd) -> anyhow::Result<u8> {
        let fields = ended.recorded.fields();
        let ran = ended.ran();
        let required = ran.counted.fidelity.as_ref().filter(|_| self.require_faithful);
        let unfaithful = required.filter(|fidelity| !verdict::has_shown_faithful(fidelity));
        let code = if unfaithful.is_some() && end.code == 0 { NOT_FAITHFUL } else { end.code };
        let report = || {
            let mut report = ran.report().with("exit_code", end.code);
            report.command = "exec".to_owned();
            fields.iter().for_each(|(name, value)| report.set(*name, value.clone()));
            unfaithful.iter().for_each(|fidelity| report.fail(verdict::brief(fidelity)));
            end.fault.iter().for_each(|fault| report.fail(fault));
            self.unwritten.get().iter().for_each(|fault| report.fail(fault.as_str()));
            report.to_json()
        };
        if let Some(fidelity) = &ran.counted.fidelity {
            let is_whole = self.verbose && fidelity.lateness.packets > 0;
            let verdict = if is_whole { verdict::real(fidelity) } else { verdict::brief(fidelity) };
            self.say(&verdict.replace("\n  because ", "; because "));
        }
        for error in &ran.counted.errors {
            self.tell_failure(error);
        }
        self.json.as_ref().map_or(Ok(()), |file| self.outputs.report(file, &report()))?;
        Ok(code)
    }

    /// Prints how each direction is set.
    fn say_settings(&self, run: &RealRun) {
        let state = run.instance().state();
        let links = &state.objects.links;
        for (place, name) in (0u32..).zip(&*links.names()) {
            let settings = links.settings(place);
            let settings: Vec<_> = settings.iter().map(|(key, value)| format!("{key} {value}")).collect();
            self.say(&format!("{name}: {}", settings.join(", ")));
        }
    }

    fn say(&self, what: &str) {
        if !self.quiet {
            self.tell(what);
        }
    }

    /// Prints a failure, unless the report says the same on standard error.
    fn tell_failure(&self, what: &str) {
        if self.messages.is_some() || !self.reports_on_standard_error() {
            self.tell(what);
        }
    }

    fn reports_on_standard_error(&self) -> bool {
        self.json.as_deref().is_some_and(is_standard_error)
    }

    /// Prints a message even if only errors are wanted.
    fn tell(&self, what: &str) {
        match &self.opened {
            Some(file) => {
                let mut file: &File = file;
                // Whoever has left a pipe needs no more.
                if let Err(error) = file.write_all(format!("{what}\n").as_bytes())
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    self.warn_of_missing(&error);
                }
            }
            None => outcome::note(&format!("longwire: {what}")),
        }
    }

    /// Warns once that messages are missing in their file. That is no reason to stop the command: it could be
    /// written at the start.
    fn warn_of_missing(&self, error: &io::Error) {
        let fault = format!("the messages are incomplete: {error}");
        if self.unwritten.set(fault.clone()).is_ok() && !self.reports_on_standard_error() {
            outcome::note(&format!("longwire: warning: {fault}"));
        }
    }
}
