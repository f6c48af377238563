//! Random processes that are run ahead of the packets.

use crate::foresight::Foresight;

/// A process that strikes some packets, whatever they contain and whenever they come.
pub trait Process: Clone {
    /// Whether it strikes the next packet. Called once for each.
    fn strikes(&mut self) -> bool;
}

/// Most packets by which a process is ahead.
pub(crate) const MOST: u32 = 64;

/// A process, ahead of the packets up to the next that it strikes: those in between need not ask.
#[derive(Debug)]
pub struct Foreseen<P> {
    process: P,
    /// The process before `passed` packets that it does not strike, and one that it does if it `struck`.
    before: P,
    passed: u32,
    struck: bool,
}

impl<P: Process> Foreseen<P> {
    pub(crate) fn new(process: P) -> Self {
        Self { before: process.clone(), process, passed: 0, struck: false }
    }

    /// The process, which is not ahead: before a change, or right after a packet that it has struck.
    pub(crate) fn process(&mut self) -> &mut P {
        &mut self.process
    }

    /// Whether it strikes the packet behind those that were foreseen.
    #[inline(always)]
    pub(crate) fn strikes(&mut self) -> bool {
        self.passed = 0;
        std::mem::take(&mut self.struck) || self.process.strikes()
    }

    /// See [`crate::judge::Judge::foresee`].
    #[inline(always)]
    pub(crate) fn foresee(&mut self) -> Option<Foresight> {
        self.before.clone_from(&self.process);
        // A copy of its own stays in registers.
        let mut process = self.process.clone();
        let (mut passed, mut struck) = (0, false);
        while passed < MOST {
            if process.strikes() {
                struck = true;
                break;
            }
            passed += 1;
        }
        (self.process, self.passed, self.struck) = (process, passed, struck);
        Foresight::of_packets(passed)
    }

    /// See [`crate::judge::Judge::recall`].
    pub(crate) fn recall(&mut self, unused: u32) {
        if self.passed > 0 || self.struck {
            self.process.clone_from(&self.before);
            (unused..self.passed).for_each(|_| _ = self.process.strikes());
            (self.passed, self.struck) = (0, false);
        }
    }
}
