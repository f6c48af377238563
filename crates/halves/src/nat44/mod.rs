//! `longwire control nat44`: assigns external addresses and ports to flows from inside.

mod entry;
mod half;
mod network;
mod packet;
mod pending;
mod predecessor;
mod reach;
mod table;
mod translator;

use crate::session::{RouterSession, shipped};
use crate::{Interval, ResidentArgs};
use anyhow::{Context, bail, ensure};
use half::{BINDINGS, Nat};
use longwire_punt::CutReason;
use longwire_punt::client::{ClientError, Control, Hello};
use longwire_report::output;
use longwire_scenario::WrittenForwarder;
use longwire_units::Nanos;
use network::{Network4, Ports};
use predecessor::Predecessor;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use table::Limits;
use translator::{Times, Translator};

/// Assign external addresses and ports to inside hosts, and release them when unused
///
/// Installs nat44, which translates packets with a binding on the data path. The first packet of a new flow
/// from inside comes up and is assigned an external port, its own if that is free, which is the same for all
/// peers of that endpoint (RFC 4787, RFC 5382, RFC 5508). ICMP errors, fragments and packets with options are
/// translated here, one by one; packets from inside that can't be translated, or find no port, are dropped
/// and counted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control nat44 r1 --inside 10.0.1.0/24 --external 10.0.2.1
  longwire control nat44 r1 --inside 10.0.0.0/8 --inside 192.168.0.0/16 --external 192.0.2.16/28 --ports \
  1024-65535 --each 500 --udp '3 min' --json")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// An inside network; up to four can be given.
    #[arg(long, value_name = "NETWORK", required = true, value_parser = Network4::read)]
    inside: Vec<Network4>,

    /// The external address, or a network of up to 256 of them. They must lead to the router: its own, or
    /// routed there.
    #[arg(long, value_name = "ADDRESS", value_parser = Network4::external)]
    external: Network4,

    /// The ports of each external address that may be assigned.
    #[arg(long, value_name = "FIRST-LAST", default_value = "1024-65535", value_parser = Ports::read)]
    ports: Ports,

    /// Most bindings altogether, at most 32768.
    #[arg(long, value_name = "COUNT", default_value_t = MOST_BINDINGS)]
    bindings: usize,

    /// Most bindings of each inside host.
    #[arg(long, value_name = "COUNT", default_value_t = 2048)]
    each: usize,

    /// Time without a packet from inside after which a UDP binding expires.
    #[arg(long, value_name = "TIME", default_value = "5 min")]
    udp: Nanos,

    /// Time without a packet after which a binding of an established TCP connection expires.
    #[arg(long, value_name = "TIME", default_value = "124 min")]
    tcp: Nanos,

    /// Time without a packet for one that is being opened or has ended.
    #[arg(long, value_name = "TIME", default_value = "4 min")]
    tcp_transitory: Nanos,

    /// Time without a packet for ICMP queries.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    icmp: Nanos,

    /// New flows a second for which the router guarantees room.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    packets: u64,

    /// Report every binding, not only their number.
    #[arg(long)]
    log: bool,

    /// Interval of reports on the number of bindings, if it has changed.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

/// Capacity of the program's map, with two entries each.
const MOST_BINDINGS: usize = 32_768;
/// Limit of the program.
const MOST_INSIDE: usize = 4;
/// The mark of packets that the program leaves to this half: "NAT4".
const MARK: u32 = 0x4e41_5434;
/// The name of its attachment.
const NAME: &str = "nat44";
/// Cycles per packet: its entries are written through the API, together with others', before it goes on. An
/// assumption.
const CYCLES: u64 = 50_000;
/// Time limit for a packet's binding.
const WITHIN: &str = "5 s";
/// Entries of the map removed per request.
const PRUNED: usize = 500;
/// Minimum lifetimes: RFC 4787 (REQ-5), RFC 5382 (REQ-5), RFC 5508 (REQ-2).
const LEAST: [(&str, Nanos); 4] = [
    ("--udp", Nanos::from_secs(120)),
    ("--tcp", Nanos::from_secs(7440)),
    ("--tcp-transitory", Nanos::from_secs(240)),
    ("--icmp", Nanos::from_secs(60)),
];

impl Args {
    /// Translates until it is stopped.
    ///
    /// # Errors
    /// If the programs are refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        self.check()?;
        let session = RouterSession::take(&self.target, self.json)?;
        reach::warn(&session, &self.external, self.json)?;
        let mut translator = self.translator();
        let (fid, control) = match Predecessor::find(&session, &self.state(), self.target.lease)? {
            Some(left) => (left.program, self.take_over(&session, left, &mut translator)?),
            None => self.install(&session)?,
        };
        let mut nat = Nat::new(&session, control, translator, fid, &self);
        let ended = session.every(Nanos(0), |_| nat.go_on());
        // A half that hung is cut off; its successor continues with the installed programs.
        match (nat.is_cut_off(), &ended) {
            (true, _) if session.is_attached(NAME) => {
                session.abandon();
                output::note("another process has taken over");
            }
            (false, Ok(())) => nat.tell_all_ended()?,
            _ => {}
        }
        match ended {
            Err(error) if has_ended(&error) => {
                output::note(&error.to_string());
                Ok(())
            }
            ended => ended,
        }
    }

    /// Installs the program, and behind it, because that sets the mark, the one whose packets go up; then
    /// attaches to the router.
    fn install(&self, session: &RouterSession) -> anyhow::Result<(u32, Control)> {
        let fid = session.install(&shipped("nat44", None, Some(&self.state())))?;
        session.install(&self.attachment())?;
        Ok((fid, self.connect()?))
    }

    /// Takes over a predecessor's attachment, and those of its bindings in the program's map that are still
    /// valid.
    fn take_over(
        &self,
        session: &RouterSession,
        left: Predecessor,
        translator: &mut Translator,
    ) -> anyhow::Result<Control> {
        let Predecessor { program, attachment } = left;
        // From here on no other process can attach.
        let control =
            self.connect().with_context(|| format!("taking over the programs {program} and {attachment}"))?;
        session.adopt(&[program, attachment])?;
        let entries = session.entries(program, BINDINGS)?;
        let stray = translator.restore(&entries);
        for keys in stray.chunks(PRUNED) {
            session.prune(program, BINDINGS, keys)?;
        }
        let bindings = (entries.len() - stray.len()) / 2;
        output::note(&format!(
            "takes over the programs {program} and {attachment}, which one before has left, with {bindings} \
             bindings"
        ));
        Ok(control)
    }

    /// Attaches to the router, which has granted the guarantee.
    fn connect(&self) -> anyhow::Result<Control> {
        let socket = self.target.socket()?;
        let hello = Hello { name: NAME.into(), packets: self.packets, cycles: CYCLES, share: 1 };
        Ok(Control::connect(Path::new(&socket), &hello)?)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.inside.len() <= MOST_INSIDE, "--inside can be given at most {MOST_INSIDE} times");
        let count = self.external.count();
        ensure!(
            count <= 256,
            "--external has {count} addresses, more than 256: write a /24 or a longer prefix"
        );
        if let Some(inside) = self.inside.iter().find(|inside| inside.meets(&self.external)) {
            bail!("--external overlaps the inside network {}", inside.first());
        }
        ensure!(
            (1..=MOST_BINDINGS).contains(&self.bindings),
            "--bindings {} is outside 1 to {MOST_BINDINGS}",
            self.bindings
        );
        ensure!(self.each > 0, "--each must be at least 1");
        let times = [self.udp, self.tcp, self.tcp_transitory, self.icmp];
        for ((option, least), time) in LEAST.into_iter().zip(times) {
            if time < least {
                output::note(&format!(
                    "{option} {time} is less than {least}, on which applications may rely"
                ));
            }
        }
        Ok(())
    }

    /// The program's state: mark, external network, inside networks.
    fn state(&self) -> Vec<u8> {
        let mut state = [&MARK.to_le_bytes()[..], &[0; 4], &self.external.bytes()].concat();
        for place in 0..MOST_INSIDE {
            state.extend(self.inside.get(place).map_or([0; 8], Network4::bytes));
        }
        state
    }

    fn attachment(&self) -> WrittenForwarder {
        WrittenForwarder {
            level: Some("control".into()),
            name: Some(NAME.into()),
            packets: Some(self.packets.to_string()),
            cycles: Some(CYCLES.to_string()),
            mark: Some(MARK.to_string()),
            within: Some(WITHIN.into()),
            // A packet with an inside address must not leave.
            otherwise: Some("drop".into()),
            ..WrittenForwarder::default()
        }
    }

    fn translator(&self) -> Translator {
        let limits = Limits {
            external: self.external.addresses(),
            ports: self.ports.first..=self.ports.last,
            bindings: self.bindings,
            each: self.each,
        };
        let times = Times {
            udp: self.udp.0,
            established: self.tcp.0,
            transitory: self.tcp_transitory.0,
            icmp: self.icmp.0,
        };
        // The next port must be unpredictable.
        Translator::new(self.inside.clone(), self.external, limits, times, RandomState::new().hash_one(NAME))
    }
}

/// Whether the router is gone, or its run has ended.
fn has_ended(error: &anyhow::Error) -> bool {
    let ended = error.downcast_ref::<ClientError>();
    matches!(ended, Some(ClientError::Ended(None | Some(CutReason::Left | CutReason::Stopped))))
}
