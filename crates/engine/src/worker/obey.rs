//! Commands of other threads are carried out.

use super::Worker;
use crate::remote::Command;
use crate::stats::{FlowStats, Report};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

impl Worker {
    /// Carries out what has been asked since the last look.
    pub(crate) fn obey(&mut self, commands: &Receiver<Command>, now: Nanos) {
        while let Ok(command) = commands.try_recv() {
            // A look at the links' counters carries out what has happened on them by now.
            if !matches!(command, Command::Look(_)) {
                self.books.did((now.0, 0));
            }
            match command {
                Command::Look(look) => look(&mut self.emulation.links, now),
                Command::Flow(reply) => {
                    // Whoever asked may have gone away.
                    let _ = reply.send((FlowStats::of(&self.books.flow), now));
                }
                Command::Report(reply) => {
                    let mut report = Report::default();
                    self.add_to(&mut report, now);
                    let _ = reply.send((report, Box::new(self.books.lateness.clone())));
                }
                Command::MadeOf { what: (of, place), reply } => {
                    let _ = reply.send(self.schedules.of(of).made_of(place).map(Arc::clone));
                }
                Command::Change { changes, step, reply } => {
                    let _ = reply.send(self.together(changes, step, now));
                }
                Command::AtNode { place, act } => {
                    // Without the node the reply is dropped, and who asked hears that nobody answers.
                    self.nodes.change_all(now);
                    if let Some(node) = self.nodes.all.get_mut(place as usize) {
                        act(&mut **node, now);
                        // It may have to be told the time sooner than it was.
                        self.nodes.ask_again(place as usize, self.earliest_turn());
                    }
                }
            }
        }
    }
}
