//! What becomes of a packet: the return codes of XDP programs (enum xdp_action of linux/bpf.h).

use crate::machine::{Effects, Redirect};

/// XDP_ABORTED: dropped, as after an error.
pub const ABORTED: u64 = 0;
/// XDP_DROP: dropped.
pub const DROP: u64 = 1;
/// XDP_PASS: to the next forwarder.
pub const PASS: u64 = 2;
/// XDP_TX: out of the port that it came in by.
pub const TRANSMIT: u64 = 3;
/// XDP_REDIRECT: where a helper was told.
pub const REDIRECT: u64 = 4;

/// What a program has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// To the next forwarder.
    Pass,
    /// Out of the port that it came in by.
    Transmit,
    /// To another port, or into a link.
    Redirect(Redirect),
    /// Dropped, for the program's own reason with this number if it gave one.
    Drop(Option<u8>),
    /// Dropped because something went wrong.
    Aborted(Abort),
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abort {
    /// The program said so: it returned XDP_ABORTED.
    Returned,
    /// It returned a code that means nothing.
    UnknownCode(u32),
    /// It returned XDP_REDIRECT without having chosen where to.
    Nowhere,
}

impl Verdict {
    /// What a return of `r0` means after these effects. Its low 32 bits count.
    pub fn new(r0: u64, effects: &Effects) -> Self {
        match u64::from(r0 as u32) {
            ABORTED => Self::Aborted(Abort::Returned),
            DROP => Self::Drop(effects.reason),
            PASS => Self::Pass,
            TRANSMIT => Self::Transmit,
            REDIRECT => match effects.redirect {
                None => Self::Aborted(Abort::Nowhere),
                Some(Redirect::Processor(_)) => Self::Pass,
                Some(to) => Self::Redirect(to),
            },
            _ => Self::Aborted(Abort::UnknownCode(r0 as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_kernels() {
        let none = Effects::default();
        let some = Effects { redirect: Some(Redirect::Port(3)), reason: Some(5), ..none };
        for (code, without, with) in [
            (0, Verdict::Aborted(Abort::Returned), Verdict::Aborted(Abort::Returned)),
            (1, Verdict::Drop(None), Verdict::Drop(Some(5))),
            (2, Verdict::Pass, Verdict::Pass),
            (0xffff_ffff_0000_0003, Verdict::Transmit, Verdict::Transmit),
            (4, Verdict::Aborted(Abort::Nowhere), Verdict::Redirect(Redirect::Port(3))),
            (5, Verdict::Aborted(Abort::UnknownCode(5)), Verdict::Aborted(Abort::UnknownCode(5))),
        ] {
            assert_eq!((Verdict::new(code, &none), Verdict::new(code, &some)), (without, with));
        }
        let processor = Effects { redirect: Some(Redirect::Processor(1)), ..none };
        assert_eq!(Verdict::new(REDIRECT, &processor), Verdict::Pass);
    }
}
