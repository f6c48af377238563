//! Verdicts: the return codes of XDP programs (enum xdp_action of linux/bpf.h).

use crate::machine::{Effects, Redirect};

/// XDP_ABORTED: dropped, as after an error.
pub const ABORTED: u64 = 0;
/// XDP_DROP: dropped.
pub const DROP: u64 = 1;
/// XDP_PASS: to the next forwarder.
pub const PASS: u64 = 2;
/// XDP_TX: back out of the ingress port.
pub const TRANSMIT: u64 = 3;
/// XDP_REDIRECT: to the target chosen by a helper.
pub const REDIRECT: u64 = 4;

/// The decision of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// To the next forwarder.
    Pass,
    /// Back out of the ingress port.
    Transmit,
    /// To another port, or into a link.
    Redirect(Redirect),
    /// Dropped, with the program's own reason if given.
    Drop(Option<u8>),
    /// Dropped because of an error.
    Aborted(Abort),
}

/// Kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abort {
    /// The program returned XDP_ABORTED.
    Returned,
    /// It returned an unknown code.
    UnknownCode(u32),
    /// It returned XDP_REDIRECT without a target.
    Nowhere,
}

impl Verdict {
    /// The verdict by `r0` and these effects. Only the low 32 bits count.
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
