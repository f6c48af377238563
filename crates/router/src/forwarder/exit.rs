//! Programs named by entries of maps: they run on a packet that its program has redirected by such an entry,
//! in the same machine, before the router sees the result.

use super::code::{Code, calls};
use longwire_program::{
    Abort, DROP, Demand, ExitKind, Helper, Machine, Maps, PASS, Prices, REDIRECT, Redirect, Rejected,
    TRANSMIT, Verdict, VerifiedProgram, verify,
};
use std::sync::Arc;

/// The programs that entries of a program's maps may name, by number from 1.
pub(super) struct Exits(Box<[Exit]>);

/// A program with its kind.
struct Exit {
    kind: ExitKind,
    verified: VerifiedProgram,
    code: Code,
}

/// A program's verified exit programs, not compiled yet.
pub(super) struct VerifiedExits(Vec<(ExitKind, VerifiedProgram)>);

impl VerifiedExits {
    /// Verifies them.
    ///
    /// # Errors
    /// The reason why the first one is refused.
    pub fn of(exits: Box<[longwire_program::Exit]>) -> Result<Self, Box<Rejected>> {
        let verified = exits.into_iter().map(|exit| Ok((exit.kind, verify(exit.program)?)));
        verified.collect::<Result<_, _>>().map(Self)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &VerifiedProgram> {
        self.0.iter().map(|(_, verified)| verified)
    }

    /// Compiles them for the maps of their program.
    pub fn compiled(self, maps: &Arc<Maps>) -> Exits {
        let one = |(kind, verified)| Exit { kind, code: Code::of(&verified, maps), verified };
        Exits(self.0.into_iter().map(one).collect())
    }
}

impl Exits {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, and where they run.
    pub fn all(&self) -> impl Iterator<Item = (ExitKind, &VerifiedProgram)> {
        self.0.iter().map(|exit| (exit.kind, &exit.verified))
    }

    /// Worst-case cost of a packet after its program.
    pub fn demand(&self, prices: &Prices) -> Demand {
        let of = |kind| {
            let own = self.0.iter().filter(move |exit| exit.kind == kind);
            own.fold(Demand::default(), |most, exit| most.or(Demand::of(&exit.verified, prices)))
        };
        let (processor, port) = (of(ExitKind::Processor), of(ExitKind::Port));
        let leads_on = |(kind, verified): (_, &VerifiedProgram)| {
            kind == ExitKind::Processor && calls(verified, |helper| helper == Helper::RedirectMap)
        };
        if self.all().any(leads_on) { processor.then(port) } else { processor.or(port) }
    }

    /// The verdict on a packet for which its program has returned this.
    pub fn leave(&self, mut returned: u64, machine: &mut Machine<'_>) -> Verdict {
        let mut is_led = false;
        loop {
            let verdict = Verdict::new(returned, &machine.effects);
            let number = std::mem::take(&mut machine.effects.exit);
            if u64::from(returned as u32) != REDIRECT || number == 0 {
                return verdict;
            }
            let exit = self.0.get(usize::from(number) - 1);
            let (Some(exit), Some(to)) = (exit, machine.effects.redirect) else {
                return Verdict::Aborted(Abort::Nowhere);
            };
            match (exit.kind, to) {
                (ExitKind::Port, Redirect::Port(port)) => {
                    machine.context.egress = port;
                    let said = exit.run(machine);
                    (machine.effects.redirect, machine.effects.exit) = (Some(to), 0);
                    return match u64::from(said as u32) {
                        PASS => verdict,
                        DROP => Verdict::Drop(machine.effects.reason),
                        // The kernel drops any other value here.
                        _ => Verdict::Aborted(Abort::Returned),
                    };
                }
                // A second processor's program could be followed by a third's: the kernel has no bound for
                // that.
                (ExitKind::Processor, Redirect::Processor(_)) if !is_led => {
                    is_led = true;
                    returned = exit.run(machine);
                    if u64::from(returned as u32) == TRANSMIT {
                        return Verdict::Aborted(Abort::Returned);
                    }
                }
                _ => return Verdict::Aborted(Abort::Nowhere),
            }
        }
    }
}

impl Exit {
    /// Runs it. As in the kernel, redirection, drop reason and count of tail calls start afresh.
    fn run(&self, machine: &mut Machine<'_>) -> u64 {
        let effects = &mut machine.effects;
        (effects.redirect, effects.reason, effects.tail_calls) = (None, None, 0);
        self.code.run(&self.verified, machine)
    }
}
