//! The running half: packets that come up, bindings that expire, and messages.

use super::Args;
use super::entry::BindingUsage;
use super::entry::{between, entries, key, told};
use super::packet::{ICMP, TCP, UDP};
use super::pending::{PendingPacket, PendingPackets, first_of};
use super::table::Endpoint;
use super::translator::{Counts, Translation, Translator};
use crate::session::{Entry, RouterSession};
use longwire_punt::Verdict;
use longwire_punt::client::{Control, Event};
use longwire_units::counted;
use serde_json::json;
use std::time::{Duration, Instant};

pub(super) struct Nat<'p> {
    session: &'p RouterSession,
    control: Control,
    translator: Translator,
    fid: u32,
    args: &'p Args,
    /// Counts at the last report.
    told: Counts,
    /// Time of the next report.
    next: Instant,
    /// Time of the last packet, by this clock and by the router's. What a predecessor has left expires
    /// although none has come here.
    clock: Option<(Instant, u64)>,
    pending: PendingPackets,
}

/// Longest sleep between checks whether it should end.
const SLEEP: Duration = Duration::from_millis(100);
/// The program's map.
pub(super) const BINDINGS: &str = "bindings";
/// Packets served, and bindings checked, per batch: their entries fit one request.
const TOGETHER: usize = 256;

/// An inside endpoint, and its external one.
type Binding = (Endpoint, Endpoint);

/// Work for packets that arrived together.
#[derive(Default)]
struct BatchWork {
    /// Answers to be sent once the entries are written: token, verdict, and new first bytes.
    answers: Vec<(u64, Verdict, Vec<u8>)>,
    entries: Vec<Entry>,
    /// New bindings.
    bound: Vec<Binding>,
}

impl<'p> Nat<'p> {
    /// Creates the state of the program with this number.
    pub fn new(
        session: &'p RouterSession,
        control: Control,
        translator: Translator,
        fid: u32,
        args: &'p Args,
    ) -> Self {
        let clock = translator.restored.map(|time| (Instant::now(), time));
        Self {
            session,
            control,
            translator,
            fid,
            args,
            told: Counts::default(),
            next: Instant::now(),
            clock,
            pending: PendingPackets::default(),
        }
    }

    /// Serves arriving packets for a short time.
    pub fn go_on(&mut self) -> anyhow::Result<()> {
        let is_due = self.now().is_some_and(|now| self.translator.table.due(now).next().is_some());
        self.control.wait(if is_due { Duration::ZERO } else { SLEEP })?;
        let mut work = BatchWork::default();
        for _ in 0..TOGETHER {
            let ups = match self.control.next()? {
                None => break,
                Some(Event::Packet(facts, bytes)) => {
                    let (token, time, length) = (facts.token, facts.time, facts.len as usize);
                    vec![PendingPacket { token, time, length, frame: bytes.to_vec() }]
                }
                Some(Event::Body(token, _, bytes)) => self.pending.come(token, bytes),
            };
            for up in ups {
                self.clock = Some((Instant::now(), up.time));
                self.serve(up, &mut work)?;
            }
        }
        self.finish(&work)?;
        self.expire()?;
        if Instant::now() >= self.next {
            self.next = Instant::now() + Duration::from_nanos(self.args.interval.nanos().0);
            self.tell()?;
        }
        Ok(())
    }

    /// Whether the router has cut it off. Packets that have come up since are lost.
    pub fn is_cut_off(&mut self) -> bool {
        loop {
            match self.control.next() {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Decides about a packet and the later fragments that waited for it.
    fn serve(&mut self, up: PendingPacket, work: &mut BatchWork) -> anyhow::Result<()> {
        let Some(mut up) = self.pending.hold(up) else { return Ok(()) };
        // Before it is rewritten.
        let first_of = first_of(&up.frame);
        let ruling = self.translator.judge(&mut up.frame, up.time);
        let verdict = match ruling {
            Translation::Needs(count) if count > up.frame.len() && count <= up.length => {
                self.pending.ask(&up);
                while !self.control.fetch(up.token, 0, u32::try_from(count)?)? {
                    self.control.flush();
                }
                return Ok(());
            }
            Translation::Needs(_) => {
                self.translator.counts.untranslatable += 1;
                Verdict::Drop
            }
            Translation::Dropped => Verdict::Drop,
            Translation::Pass | Translation::Rewritten => Verdict::Pass,
            Translation::Bound(inside, external, noted) => {
                work.entries.extend(entries((inside, external), noted, up.time));
                work.bound.push((inside, external));
                Verdict::Pass
            }
        };
        if !matches!(ruling, Translation::Rewritten | Translation::Bound(..)) {
            up.frame.clear();
        }
        work.answers.push((up.token, verdict, up.frame));
        for later in self.pending.released(first_of) {
            self.serve(later, work)?;
        }
        Ok(())
    }

    /// Writes new bindings, then sends the answers, whose packets need them.
    fn finish(&mut self, work: &BatchWork) -> anyhow::Result<()> {
        if !work.entries.is_empty() {
            self.session.fill(self.fid, BINDINGS, &work.entries)?;
        }
        for (token, verdict, head) in &work.answers {
            while !self.control.answer(*token, *verdict, head)? {
                self.control.flush();
            }
        }
        self.control.flush();
        for &(inside, external) in work.bound.iter().filter(|_| self.args.log) {
            let event = told("bound", inside, external);
            self.session.tell(&event, &format!("bound: {}", between(inside, external)))?;
        }
        Ok(())
    }

    /// The router's time, or earlier; none before the first packet.
    fn now(&self) -> Option<u64> {
        let (at, time) = self.clock?;
        Some(time.saturating_add(u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Removes expired bindings.
    fn expire(&mut self) -> anyhow::Result<()> {
        let Some(now) = self.now() else { return Ok(()) };
        let due: Vec<Binding> = self.translator.table.due(now).take(TOGETHER).collect();
        if due.is_empty() {
            return Ok(());
        }
        let (mut over, mut ended) = (Vec::new(), Vec::new());
        for ((inside, external), noted) in self.with_usage(due)? {
            match self.translator.keep_until(inside, noted[0], noted[1], now) {
                Some(until) => self.translator.table.put_off(inside, until),
                None => {
                    over.extend([key(inside, 0), key(external, 1)]);
                    ended.push((inside, external, [noted[0].packets, noted[1].packets]));
                }
            }
        }
        if !over.is_empty() {
            self.session.prune(self.fid, BINDINGS, &over)?;
        }
        for (inside, external, packets) in ended {
            self.translator.table.release(inside);
            self.translator.counts.ended += 1;
            self.tell_end(inside, external, packets)?;
        }
        Ok(())
    }

    /// Bindings with what is known of their packets, out and back.
    fn with_usage(&self, bindings: Vec<Binding>) -> anyhow::Result<Vec<(Binding, [BindingUsage; 2])>> {
        let keys = bindings.iter().flat_map(|&(inside, external)| [key(inside, 0), key(external, 1)]);
        let values = self.session.values(self.fid, BINDINGS, &keys.collect::<Vec<_>>())?;
        let noted =
            values.iter().map(|value| value.as_deref().and_then(BindingUsage::read).unwrap_or_default());
        let noted: Vec<BindingUsage> = noted.collect();
        let both = bindings.into_iter().zip(noted.as_chunks::<2>().0.iter().copied());
        Ok(both.map(|(binding, noted)| (binding, self.translator.usage(binding.0, noted))).collect())
    }

    /// Reports that a binding has ended, with its packets out and back, if every binding is reported.
    fn tell_end(&self, inside: Endpoint, external: Endpoint, packets: [u64; 2]) -> anyhow::Result<()> {
        if !self.args.log {
            return Ok(());
        }
        let mut event = told("ended", inside, external);
        event["packets"] = packets.as_slice().into();
        let [out, back] = packets;
        let out = counted(out, "packet");
        self.session.tell(&event, &format!("ended: {}; {out} out, {back} back", between(inside, external)))
    }

    /// Reports all bindings as ended: their program is about to be removed.
    pub fn tell_all_ended(&self) -> anyhow::Result<()> {
        if !self.args.log {
            return Ok(());
        }
        let all: Vec<Binding> = self.translator.table.due(u64::MAX).collect();
        for some in all.chunks(TOGETHER) {
            for ((inside, external), [out, back]) in self.with_usage(some.to_vec())? {
                self.tell_end(inside, external, [out.packets, back.packets])?;
            }
        }
        Ok(())
    }

    /// Reports counts that have changed, and exhausted resources.
    fn tell(&mut self) -> anyhow::Result<()> {
        let (before, now) = (self.told, self.translator.counts);
        if before == now {
            return Ok(());
        }
        self.told = now;
        for (what, count, text) in [
            ("host", now.host - before.host, "hosts have reached the limit of --each"),
            ("table", now.table - before.table, "the limit of --bindings is reached"),
            ("ports", now.ports - before.ports, "no port of their external address was free"),
        ] {
            if count > 0 {
                let event = json!({ "event": "full", "what": what, "packets": count });
                self.session.tell(&event, &format!("full: {} dropped: {text}", counted(count, "packet")))?;
            }
        }
        let table = &self.translator.table;
        let [udp, tcp, icmp] = [UDP, TCP, ICMP].map(|protocol| table.bindings(protocol));
        let refused = now.host + now.table + now.ports;
        let event = json!({
            "event": "counts", "bindings": { "udp": udp, "tcp": tcp, "icmp": icmp }, "hosts": table.hosts(),
            "made": now.made, "ended": now.ended,
            "translated": { "errors": now.errors, "parts": now.parts, "others": now.others },
            "refused": { "host": now.host, "table": now.table, "ports": now.ports },
            "untranslatable": now.untranslatable,
        });
        let hosts = table.hosts();
        let text = format!(
            "{udp} UDP, {tcp} TCP and {icmp} ICMP bindings of {hosts} hosts; {} made, {} ended; {refused} \
             packets refused, {} untranslatable",
            now.made, now.ended, now.untranslatable
        );
        self.session.tell(&event, &text)
    }
}
