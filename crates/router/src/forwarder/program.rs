//! A program with its state, maps and counters, ready to run on packets.

use super::bench::{Bench, ROOM};
use super::code::{Code, How, calls};
use super::cost::{Costs, MeasuredCost};
use super::counters::{Counters, ForwarderStats};
use super::exit::{Exits, VerifiedExits};
use super::key::{Key, KeyError};
use super::price::RouterPrices;
use super::routes::{Random, Surroundings};
use crate::next_hop::NextHop;
use crate::state::Core;
use longwire_block::Dice;
use longwire_jit::{PreparedProgram, Shown};
use longwire_program::map::MapError;
use longwire_program::{
    Arithmetic, Context, Demand, Effects, ExitKind, Helper, Instruction, Item, Machine, Maps, Operand,
    Packet, Program, ProgramState, Register, Rejected, Stack, Verdict, VerifiedProgram, verify,
};
use longwire_punt::AttachmentId;
use longwire_units::counted;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

/// Number of an installed forwarder, never reused within a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fid(pub u32);

/// A link that a program may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChoice {
    /// Its name.
    pub name: Box<str>,
    /// Its number among the links that programs may choose:
    /// [`Meta::requested_link`](longwire_packet::Meta::requested_link).
    pub number: u16,
    /// Index of the router's port that leads to it.
    pub port: u16,
    /// Ingress port of its packets, if it begins at a port of the router itself.
    pub from: Option<u16>,
}

/// Settings of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installation {
    /// Its name in lists and in budget errors.
    pub name: Box<str>,
    /// What was installed under this name: a program that comes with Longwire, or an object file without its
    /// folder and ending. Empty if no program was named.
    pub program: Box<str>,
    /// Its packets.
    pub key: Key,
    /// Bytes of its state, at most 4096, initially zero. By default, what it uses.
    pub state: Option<u32>,
    /// Next hop of packets that it passes, instead of the route's: a gateway or a port of the router.
    pub way: Option<NextHop>,
    /// The level above to which packets that it passes go: an attachment of
    /// [`Router::set_levels`](crate::Router::set_levels). If nobody is attached, they are forwarded as usual.
    pub above: Option<AttachmentId>,
    /// Mark required to go up, set by programs before it, the program itself, or an earlier router. Without
    /// it all packets go up.
    pub mark: Option<u32>,
    /// The output queue of its packets, unless it chooses another.
    pub queue: Option<u8>,
    /// The links that the program may choose, numbered from 0.
    pub links: Box<[LinkChoice]>,
    /// Number of threads that run it: each has its own values in per-CPU maps. 0 means 1. A router with
    /// several processors has a thread for each of them besides its worker.
    pub threads: u32,
}

/// Reason why a program can't be installed.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The verifier refuses it.
    #[error(transparent)]
    Rejected(#[from] Box<Rejected>),
    /// Its maps can't be created.
    #[error(transparent)]
    Map(#[from] MapError),
    /// No packet can match its key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// State size below what it uses, or above the maximum.
    #[error(
        "the state is {}; the program uses {used}, and {most} are the most",
        counted(*size, "byte"),
        most = ProgramState::MAX
    )]
    State {
        /// The requested size.
        size: u32,
        /// The used size.
        used: u32,
    },
    /// It uses more links than it was given.
    #[error(
        "the program chooses among {}, and {named} are named; name them in links (--link)",
        counted(*used, "link")
    )]
    Links {
        /// Number of links given.
        named: usize,
        /// Number of links needed, at least.
        used: u32,
    },
    /// It looks up routes on threads that don't see the router's tables.
    #[error(
        "it calls fib_lookup, which only the router's own worker can answer; let the router have one \
         processor"
    )]
    Routes,
    /// The next hop is invalid.
    #[error("its packets are to go to a port or a gateway, not {0:?}")]
    Way(NextHop),
}

/// A program that can be installed, or is.
pub struct Forwarder {
    pub(super) fid: Fid,
    pub(super) installation: Installation,
    pub(super) demand: Demand,
    /// Whether it may change packets, and whether it may move their ends: then it must be run by
    /// [`Forwarder::run_with_room`].
    pub(super) writes: bool,
    pub(super) moves: bool,
    /// Whether it is compiled, does not move packets' ends, chooses no links, reads no marks, and is
    /// installed without its own destination.
    pub(super) plain: bool,
    /// The attachment to which all its packets go up, if it does not inspect them: then a packet that the
    /// attachment refuses need not be passed to it.
    pub(super) early: Option<AttachmentId>,
    verified: VerifiedProgram,
    code: Code,
    exits: Exits,
    maps: Arc<Maps>,
    state: Arc<ProgramState>,
    pub(super) counters: Counters,
    pub(super) costs: Costs,
    random: Random,
}

impl Forwarder {
    /// Verifies and compiles a program, and creates its state and maps. Takes milliseconds: not for a
    /// worker's thread. `seed` is that of the maps' hashes, which senders should not know.
    ///
    /// # Errors
    /// If the program or its installation is invalid.
    pub fn prepare(
        program: Program,
        installation: Installation,
        prices: &RouterPrices,
        seed: u64,
    ) -> Result<Self, PrepareError> {
        Self::prepare_after(None, (program, installation), prices, seed)
    }

    /// Prepares a program that replaces this one ([`Forwarders::replacing`](super::Forwarders::replacing)):
    /// it shares maps with identical declarations, with their contents, and state of the same size.
    ///
    /// # Errors
    /// As [`Forwarder::prepare`].
    pub fn prepare_instead(
        &self,
        program: Program,
        installation: Installation,
        prices: &RouterPrices,
        seed: u64,
    ) -> Result<Self, PrepareError> {
        Self::prepare_after(Some(self), (program, installation), prices, seed)
    }

    fn prepare_after(
        before: Option<&Self>,
        (program, installation): (Program, Installation),
        prices: &RouterPrices,
        seed: u64,
    ) -> Result<Self, PrepareError> {
        if let Key::Flow(key) = &installation.key {
            key.check()?;
        }
        if let Some(way) = installation.way.filter(|way| way.port().is_none()) {
            return Err(PrepareError::Way(way));
        }
        let mut program = program.for_workers(installation.threads);
        let exits = VerifiedExits::of(std::mem::take(&mut program.exits))?;
        let verified = verify(program)?;
        let all = || exits.all().chain([&verified]);
        let used = all().map(VerifiedProgram::state_size).max().unwrap_or(0);
        let size = installation.state.unwrap_or(used);
        if size < used || size > ProgramState::MAX {
            return Err(PrepareError::State { size, used });
        }
        let links = all().map(VerifiedProgram::links).max().unwrap_or(0);
        if installation.links.len() < links as usize {
            return Err(PrepareError::Links { named: installation.links.len(), used: links });
        }
        if installation.threads > 1 && all().any(|one| calls(one, |helper| helper == Helper::FibLookup)) {
            return Err(PrepareError::Routes);
        }
        let writes = all().any(|one| one.most()[Item::PacketStore] > 0 || calls(one, may_write));
        let moves = all().any(|one| calls(one, |helper| helper.signature().moves_packet));
        let (known, program) = (before.map(|before| &*before.maps), verified.program());
        let maps = Arc::new(Maps::in_place_of(known, &program.maps, program.workers, seed)?);
        let state = before.map(|before| &before.state).filter(|state| state.size() == size);
        let (code, exits) = (Code::of(&verified, &maps), exits.compiled(&maps));
        let mut made = Self {
            fid: Fid(0),
            demand: Demand::of(&verified, &prices.items).then(exits.demand(&prices.items)),
            writes,
            moves,
            plain: false,
            early: installation.above.filter(|_| installation.mark.is_none() && says_nothing(&verified)),
            installation,
            verified,
            code,
            exits,
            maps,
            state: state.cloned().unwrap_or_else(|| Arc::new(ProgramState::new(size))),
            counters: Counters::default(),
            costs: Costs::new(),
            random: Random::default(),
        };
        let goes_on = made.installation.way.is_none() && made.installation.above.is_none();
        let chooses = calls(&made.verified, chooses_or_reads);
        made.plain = goes_on && !made.moves && !chooses && made.exits.is_empty() && made.ready().is_some();
        Ok(made)
    }

    /// Sets its number, and the corresponding random stream.
    pub(super) fn number(&mut self, fid: Fid, seed: u64) {
        self.fid = fid;
        let stream = Dice::named(seed, &format!("forwarders/{}", fid.0)).draw();
        self.random.0.store(stream, Ordering::Relaxed);
    }

    /// Its number.
    pub fn fid(&self) -> Fid {
        self.fid
    }

    /// How it was installed.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The program, verified.
    pub fn verified(&self) -> &VerifiedProgram {
        &self.verified
    }

    /// The programs that entries of its maps may name, by number from 1, and where they run.
    pub fn exits(&self) -> impl Iterator<Item = (ExitKind, &VerifiedProgram)> {
        self.exits.all()
    }

    /// Worst-case cost per packet, including the programs that entries of its maps may name.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Its maps, which the control half may read and write at any time.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Its state. Reading or writing it as a whole must be done by its router.
    pub fn state(&self) -> &ProgramState {
        &self.state
    }

    /// Whether both share their state.
    pub fn has_state_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Its measured time per packet: in real time, of one batch in 256.
    pub fn measured(&self) -> Option<MeasuredCost> {
        self.costs.read()
    }

    /// Whether it runs as machine code.
    pub fn is_compiled(&self) -> bool {
        matches!(self.code, Code::Compiled(_))
    }

    /// Its counters.
    pub fn stats(&self) -> ForwarderStats {
        self.counters.read()
    }

    /// The output queue of its installation.
    #[inline]
    pub(super) fn queue(&self) -> Option<u16> {
        self.installation.queue.map(u16::from)
    }

    /// Prepares it for a series of packets, if it is compiled and does not move packets' ends.
    #[inline]
    pub(super) fn ready(&self) -> Option<Ready<'_>> {
        Some(Ready { forwarder: self, how: self.code.ready(&self.state)? })
    }

    /// Runs it on a copy of a frame, and returns the resulting frame.
    pub(super) fn run_with_room<'b>(
        &self,
        bench: &'b mut Bench,
        context: Context,
        frame: &[u8],
        core: &Core,
    ) -> (Verdict, Effects, &'b [u8]) {
        let data = ROOM..ROOM + frame.len();
        let buffer = &mut bench.buffer[..ROOM + frame.len() + ROOM];
        buffer[data.clone()].copy_from_slice(frame);
        let packet = Packet::new(buffer, data);
        let (verdict, effects, range) =
            self.run_on(&mut bench.stack, bench.alone, context, packet, Some(core));
        (verdict, effects, &bench.buffer[range])
    }

    /// Runs it on a packet, and returns the packet's new range in its buffer. `alone` means that no other
    /// thread runs it; `core` answers its route lookups.
    #[inline]
    pub(super) fn run_on(
        &self,
        stack: &mut Stack,
        alone: bool,
        context: Context,
        packet: Packet<'_>,
        core: Option<&Core>,
    ) -> (Verdict, Effects, std::ops::Range<usize>) {
        let mut environment = Surroundings { random: &self.random, core };
        let mut machine = Machine {
            context,
            packet,
            stack,
            state: &self.state,
            maps: &self.maps,
            environment: &mut environment,
            effects: Effects::default(),
        };
        let returned = self.code.run(&self.verified, &mut machine);
        let verdict = match self.exits.is_empty() {
            true => Verdict::new(returned, &machine.effects),
            false => self.exits.leave(returned, &mut machine),
        };
        self.counters.note(verdict, &machine.effects, alone);
        (verdict, machine.effects, machine.packet.range())
    }
}

/// A program prepared for a series of packets.
pub(super) struct Ready<'f> {
    pub forwarder: &'f Forwarder,
    how: How<'f>,
}

impl<'f> Ready<'f> {
    /// Its code, if that calls no helpers.
    #[inline]
    pub fn code(&self) -> Option<PreparedProgram<'f>> {
        match self.how {
            How::Alone(code) => Some(code),
            How::Helped(_) => None,
        }
    }

    /// Lower half of its return value for a packet that passes unchanged; an impossible value if no packet
    /// does.
    #[inline]
    pub fn quiet(&self) -> u64 {
        if self.forwarder.writes || self.forwarder.queue().is_some() { u64::MAX } else { PASS.into() }
    }

    /// Its ruling on a packet, from its return value without helper calls, or after it was stopped; none as
    /// in [`Ready::run`].
    #[inline]
    pub fn heard(&self, returned: Option<u64>, alone: bool) -> Option<(Verdict, Effects)> {
        match returned {
            Some(returned) if returned as u32 == PASS => None,
            returned => {
                let returned = returned.unwrap_or(longwire_program::ABORTED);
                Some(self.said(returned, Effects::default(), alone))
            }
        }
    }

    /// Runs it on a packet. None if the packet passes without a request, as most do: [`Ready::passed`] must
    /// count it.
    #[inline]
    pub fn run(&self, shown: &mut Shown<'_>, alone: bool) -> Option<(Verdict, Effects)> {
        let code = match &self.how {
            How::Alone(code) => return self.heard(shown.run(code).ok(), alone),
            How::Helped(code) => code,
        };
        match shown.run_helped(code, &mut Surroundings { random: &self.forwarder.random, core: None }) {
            (Ok(returned), effects) if returned as u32 == PASS && asks_nothing(&effects) => None,
            (returned, effects) => {
                Some(self.said(returned.unwrap_or(longwire_program::ABORTED), effects, alone))
            }
        }
    }

    /// Counts passed packets.
    #[inline]
    pub fn passed(&self, packets: u64, alone: bool) {
        self.forwarder.counters.passed(packets, alone);
    }

    #[inline(never)]
    fn said(&self, returned: u64, effects: Effects, alone: bool) -> (Verdict, Effects) {
        let verdict = Verdict::new(returned, &effects);
        self.forwarder.counters.note(verdict, &effects, alone);
        (verdict, effects)
    }
}

const PASS: u32 = longwire_program::PASS as u32;

/// Whether there is nothing to do or count if the packet passes. Only for programs that can't choose links:
/// what they may call implies this, so it need not be checked per packet.
#[inline]
fn asks_nothing(effects: &Effects) -> bool {
    // A redirection and a reason matter only with another return value.
    let Effects { redirect: _, exit: _, queue, mark, link, reason: _, traces: _, tail_calls: _ } = effects;
    debug_assert!(link.is_none(), "a program that chooses links is not plain");
    queue.is_none() && mark.is_none()
}

impl std::fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("fid", &self.fid)
            .field("installation", &self.installation)
            .finish_non_exhaustive()
    }
}

/// Whether it is the program that passes every packet and does nothing else.
fn says_nothing(verified: &VerifiedProgram) -> bool {
    let returns = |source| matches!(source, Operand::Immediate(value) if value as u32 == PASS);
    matches!(
        *verified.program().code.instructions(),
        [Instruction::Arithmetic { operation: Arithmetic::Mov, dst: Register::R0, source, .. },
            Instruction::Exit]
            if returns(source)
    )
}

/// Whether a helper's effect concerns later programs, links, or the router's tables, which only the general
/// path handles.
const fn chooses_or_reads(helper: Helper) -> bool {
    matches!(helper, Helper::RedirectLink | Helper::ChooseLink | Helper::ReadMark | Helper::FibLookup)
}

/// Whether a helper may change a packet, for example by loading bytes into it.
const fn may_write(helper: Helper) -> bool {
    matches!(helper, Helper::StoreBytes | Helper::LoadBytes | Helper::AdjustHead | Helper::AdjustTail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::assemble;

    fn plain(code: &str) -> bool {
        let program = Program::new("p", assemble(code).unwrap(), []);
        let link = LinkChoice { name: "l".into(), number: 0, port: 0, from: None };
        let installation = Installation { links: [link].into(), ..Installation::default() };
        Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap().plain
    }

    #[test]
    fn programs_with_links_are_not_plain() {
        let calling = |helper: Helper| plain(&format!("r1 = 0\n call {}\n r0 = 2\n exit", helper.number()));
        for helper in [Helper::ChooseLink, Helper::RedirectLink, Helper::ReadMark] {
            assert!(!calling(helper), "{}", helper.name());
        }
        for helper in [Helper::ChooseQueue, Helper::Mark, Helper::Drop, Helper::BootTime] {
            assert!(calling(helper), "{}", helper.name());
        }
        assert!(plain("r0 = 2\n exit"));
    }

    #[test]
    fn only_of_a_program_that_says_nothing_are_packets_refused_early() {
        let early = |code: &str, mark| {
            let program = Program::new("p", assemble(code).unwrap(), []);
            let above = Some(AttachmentId::control(3));
            let installation = Installation { above, mark, ..Installation::default() };
            Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap().early
        };
        assert_eq!(early("r0 = 2\n exit", None), Some(AttachmentId::control(3)));
        assert_eq!(early("w0 = 2\n exit", None), Some(AttachmentId::control(3)));
        assert_eq!(early("r0 = 2\n exit", Some(7)), None, "others do not go up");
        for code in ["r0 = 1\n exit", "r0 = 0\n exit", "r1 = 0\n r0 = 2\n exit", "r0 = r1\n r0 = 2\n exit"] {
            assert_eq!(early(code, None), None, "{code}");
        }
    }

    #[test]
    fn what_passes_may_ask_for_a_queue_or_a_mark() {
        let none = Effects::default();
        assert!(asks_nothing(&Effects { reason: Some(3), traces: 1, ..none }));
        assert!(!asks_nothing(&Effects { queue: Some(0), ..none }));
        assert!(!asks_nothing(&Effects { mark: Some(0), ..none }));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is not plain")]
    fn no_plain_program_asks_for_a_link() {
        asks_nothing(&Effects { link: Some(0), ..Effects::default() });
    }
}
