//! Changes of links at run time in ns scripts: `$ns at`, `rtmodel-at`, `rtmodel`, and Emulab's events.
//!
//! Commands of `at` are executed after the rest of the script, in time order. Route models follow ns-2's
//! rtglib/dynamics.tcl, with the defaults of ns-default.tcl.

use super::{MOST, Object, Script, Setting};
use crate::ns_queue::{Dialect, Queue};
use crate::ns_value::{read, seconds};
use crate::quantity::ns_rate;
use crate::stage::Stage;
use crate::tcl::{Tcl, items};
use crate::topology::{Change, Half, written_rate};
use crate::{ImportError, Result};
use longwire_scenario::quoted;
use longwire_units::Nanos;

/// Commands for a time.
pub(super) struct Later {
    line: usize,
    time: Nanos,
    text: String,
}

/// A deferred command in execution: its text, and the number of changes before it.
#[derive(Debug, Default)]
pub(super) struct DeferredCommand {
    command: String,
    changes: usize,
}

/// Executes deferred commands.
pub(super) fn execute(tcl: &mut Tcl<'_, Script<'_>>) -> Result<()> {
    let mut later = std::mem::take(&mut tcl.host.later);
    later.sort_by_key(|command| command.time);
    for Later { line, time, text } in later {
        tcl.host.now = Some(time);
        tcl.host.carried =
            DeferredCommand { command: first_word(&text), changes: tcl.host.topology.changes.len() };
        tcl.run(&text, line)?;
    }
    Ok(())
}

impl Script<'_> {
    /// `at TIME "COMMANDS"`.
    pub(super) fn at(&mut self, line: usize, rest: &[String]) -> Result<String> {
        let [when, what] = rest else {
            let fix = "write $ns at 10.0 \"$link0 down\"";
            return Err(ImportError::new(line, "at takes a time and a command", fix));
        };
        match seconds(when) {
            Some(time) => {
                let count = self.later.len() + 1;
                ImportError::if_above(count, MOST, line, "events", "import a smaller script")?;
                self.later.push(Later { line, time, text: what.clone() });
            }
            None => {
                let why = "its time is not known before the run: write it in seconds";
                self.note(line, &["at".into(), when.clone(), what.clone()], why);
            }
        }
        Ok(String::new())
    }

    /// A command of the simulator at a time of the run.
    pub(super) fn simulator_then(&mut self, line: usize, words: &[String]) -> Result<String> {
        let command = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        match command.as_str() {
            "link" => {
                return self.between(line, rest).map(|half| self.handle(Object::Direction(half)));
            }
            "now" => return Ok(self.clock()),
            "bandwidth" | "delay" => {
                let (edge, forward) = self.between(line, rest)?;
                let both = rest.get(3).is_some_and(|word| word.eq_ignore_ascii_case("duplex"));
                let setting = self.setting(line, &command, rest.get(2))?;
                self.settle(line, &[edge], [both || forward, both || !forward], &[setting])?;
            }
            "queue-limit" => {
                let half = self.between(line, rest)?;
                self.queue_then(line, half, "limit_", rest.get(2))?;
            }
            "rtmodel-at" => return self.switched_at(line, rest),
            "halt" | "stop" | "run" | "flush-trace" => {}
            "at" => self.note(line, words, self.again(rest)),
            _ => self.note(line, words, "of the network, links and their queues can change during the run"),
        }
        Ok(String::new())
    }

    /// Reason why a command deferred during the run is skipped: usually it defers itself, to measure
    /// something.
    fn again(&self, rest: &[String]) -> &'static str {
        if rest.get(1).is_none_or(|text| first_word(text) != self.carried.command) {
            "commands that are created during the run are not executed"
        } else if self.topology.changes.len() == self.carried.changes {
            "it repeats to record something, and changes nothing: longwire ctl stats and \
             longwire run --record do that here"
        } else {
            "it repeats, and its changes are carried over once: write an [[at]] event with \
             every"
        }
    }

    /// The time, in seconds.
    pub(super) fn clock(&self) -> String {
        in_seconds(self.now.unwrap_or(Nanos::ZERO))
    }

    /// The setting made by `bandwidth` or `delay` of ns-2.
    fn setting(&mut self, line: usize, key: &str, value: Option<&String>) -> Result<Setting> {
        if key.starts_with("delay") {
            return Ok(Setting::Delay(self.delay(line, value)?));
        }
        Ok(Setting::Rate(read(line, "the bandwidth", value, "1Mb", ns_rate)?))
    }

    /// Handles the link behind a queue: `[$l link] set bandwidth_ 5Mb`, `[$l link] set delay_ 30ms`. Without
    /// a value, it is read.
    pub(super) fn delay_link(&mut self, line: usize, half: Half, rest: &[String]) -> Result<String> {
        let words: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
        match (&words.iter().map(String::as_str).collect::<Vec<_>>()[..], self.now) {
            (["set", "bandwidth_"], _) => Ok(self.present(half).rate.to_string()),
            (["set", "delay_"], _) => Ok(in_seconds(self.present(half).delay)),
            (["set", key @ ("bandwidth_" | "delay_"), _], Some(_)) => {
                let setting = self.setting(line, key, rest.get(2))?;
                self.settle(line, &[half.0], only(half), &[setting])
            }
            (["set", "bandwidth_", _], None) => {
                self.direction(half).rate = read(line, "bandwidth_", rest.get(2), "1Mb", ns_rate)?;
                Ok(String::new())
            }
            (["set", "delay_", _], None) => {
                self.direction(half).delay = self.delay(line, rest.get(2))?;
                Ok(String::new())
            }
            _ => self.skip(line, rest, "of a link its bandwidth_ and delay_ are carried over"),
        }
    }

    /// Sets a queue's parameter during the run. Returns whether there is such a setting.
    pub(super) fn queue_then(
        &mut self,
        line: usize,
        half: Half,
        key: &str,
        value: Option<&String>,
    ) -> Result<bool> {
        if self.topology.dialect == Dialect::Emulab {
            return self.event_of_queue(line, half, key, value);
        }
        let mut queue = self.present(half).queue.clone();
        queue.begin(self.direction(half).rate);
        if !queue.set(line, key, value)? {
            return Ok(false);
        }
        self.put_queue(line, half, queue)?;
        Ok(true)
    }

    /// Assigns this queue to a direction from now on. Values that ns-2 derives from the link are derived at
    /// the beginning of the run.
    pub(crate) fn put_queue(&mut self, line: usize, half: Half, queue: Queue) -> Result<()> {
        let direction = self.direction(half).clone();
        let mut stage = Stage::default();
        queue.write(line, self.topology.dialect, (direction.rate, direction.delay), &mut stage, self.notes);
        self.present(half).queue = queue;
        let settings = stage.settings.into_iter().map(|(_, text)| ("queue", text)).collect();
        self.note_change(line, half, settings)
    }

    /// Sets these directions of links from now on.
    pub(crate) fn settle(
        &mut self,
        line: usize,
        edges: &[usize],
        directions: [bool; 2],
        settings: &[Setting],
    ) -> Result<String> {
        for half in each_direction(edges, directions) {
            if !half.1 && !self.topology.edges[half.0].duplex {
                continue;
            }
            let dialect = self.topology.dialect;
            let mut texts = Vec::new();
            for setting in settings {
                // Not kept with `Up`: `rtmodel-at` is read while the link is still being set up.
                if !matches!(setting, Setting::Up(_)) {
                    self.present(half).apply(*setting);
                }
                texts.push(match *setting {
                    Setting::Rate(rate) => ("rate", quoted(&written_rate(line, rate, dialect, self.notes)?)),
                    Setting::Delay(delay) => ("delay", quoted(&delay.to_string())),
                    Setting::Loss(_) => ("loss", self.present(half).loss_text()),
                    Setting::Up(up) => ("state", quoted(if up { "up" } else { "down" })),
                });
            }
            self.note_change(line, half, texts)?;
        }
        Ok(String::new())
    }

    /// A change of links: `down`, `up`, `bandwidth 10Mb duplex`, `delay 10ms`, `plr 0.1`, and Emulab's
    /// `modify BANDWIDTH=1000 DELAY=10 PLR=0.1`.
    pub(super) fn change(
        &mut self,
        line: usize,
        edges: &[usize],
        mut directions: [bool; 2],
        words: &[String],
    ) -> Result<String> {
        let mut settings = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word.contains('=') {
                let parameters: Vec<&String> = words.iter().filter(|word| word.contains('=')).collect();
                self.modify(line, edges, directions, &parameters)?;
                break;
            }
            let emulab = self.topology.dialect == Dialect::Emulab;
            match word.to_ascii_lowercase().as_str() {
                switch @ ("up" | "down") => settings.push(Setting::Up(switch == "up")),
                "bandwidth" | "bw" => settings.push(self.setting(line, "bandwidth", rest.next())?),
                "delay" if emulab => {
                    let value = rest.next().cloned().unwrap_or_default();
                    settings.extend(self.modified(line, "DELAY", &value)?);
                }
                "delay" => settings.push(self.setting(line, "delay", rest.next())?),
                "plr" | "loss" => {
                    let value = rest.next().cloned().unwrap_or_default();
                    settings.extend(self.modified(line, "PLR", &value)?);
                }
                "modify" | "duplex" => {}
                "simplex" => directions[1] = false,
                _ => {
                    let why = "of a link its bandwidth, delay, plr, queue, up and down can change";
                    self.note(line, words, why);
                    break;
                }
            }
        }
        self.note_lans(line, edges, directions, &settings);
        self.settle(line, edges, directions, &settings)
    }

    fn note_change(&mut self, line: usize, half: Half, settings: Vec<(&'static str, String)>) -> Result<()> {
        let (time, directions) = (self.now.unwrap_or(Nanos::ZERO), only(half));
        self.note_changes(line, &[half.0], Change { time, every: None, edge: 0, directions, settings })
    }

    /// Records the change for each of the links.
    fn note_changes(&mut self, line: usize, edges: &[usize], change: Change) -> Result<()> {
        if change.settings.is_empty() {
            return Ok(());
        }
        let count = self.topology.changes.len() + edges.len();
        ImportError::if_above(count, MOST, line, "changes", "import a smaller script")?;
        self.topology.changes.extend(edges.iter().map(|&edge| Change { edge, ..change.clone() }));
        Ok(())
    }

    /// `rtmodel-at 1.0 down $a $b`, or of one node: all its links.
    pub(super) fn switched_at(&mut self, line: usize, rest: &[String]) -> Result<String> {
        let [when, what, nodes @ ..] = rest else {
            let fix = "write rtmodel-at 1.0 down $a $b";
            return Err(ImportError::new(line, "rtmodel-at is incomplete", fix));
        };
        let edges = self.edges_between(line, nodes)?;
        let before = self.now.replace(read(line, "rtmodel-at", Some(when), "10.0", seconds)?);
        let done = self.change(line, &edges, [true, true], std::slice::from_ref(what));
        self.now = before;
        done
    }

    /// The link between two nodes, or all links of one.
    fn edges_between(&self, line: usize, nodes: &[String]) -> Result<Vec<usize>> {
        if nodes.len() > 1 {
            return Ok(vec![self.between(line, nodes)?.0]);
        }
        let node = self.node_of(line, nodes.first())?;
        let edges = self.topology.edges.iter().enumerate();
        Ok(edges.filter(|(_, edge)| edge.ends.0 == node || edge.ends.1 == node).map(|(at, _)| at).collect())
    }

    /// `rtmodel Deterministic {START UP DOWN FINISH} $a $b`: from START on the link is alternately up and
    /// down, and up at FINISH.
    pub(super) fn route_model(&mut self, line: usize, rest: &[String]) -> Result<String> {
        let [kind, parameters, nodes @ ..] = rest else {
            let fix = "write rtmodel Deterministic {0.5 2.0 1.0} $a $b";
            return Err(ImportError::new(line, "rtmodel is incomplete", fix));
        };
        let given = items(parameters);
        let (up, down) = match kind.to_ascii_lowercase().as_str() {
            "manual" => {
                let [what, when] = &given[..] else {
                    let fix = "write rtmodel Manual {down 1.0} $a $b";
                    return Err(ImportError::new(line, "rtmodel Manual takes a command and a time", fix));
                };
                let words: Vec<String> =
                    [when.clone(), what.clone()].into_iter().chain(nodes.iter().cloned()).collect();
                return self.switched_at(line, &words);
            }
            "deterministic" => ("2.0", "1.0"),
            "exponential" => {
                let why = "its times are drawn there; here they are exactly their means";
                self.note(line, &words_of(rest), why);
                ("10.0", "1.0")
            }
            _ => {
                let why = "of route models Deterministic, Exponential and Manual are carried over";
                return self.skip(line, &words_of(rest), why);
            }
        };
        let edges = self.edges_between(line, nodes)?;
        // Two numbers are up and down, three begin with the start, four end with the finish; - means the
        // default.
        let place = if given.len() == 2 { 1 } else { 0 };
        let number = |at: usize, default: &str| {
            let word = at.checked_sub(place).and_then(|at| given.get(at)).filter(|word| *word != "-");
            let word = word.cloned().unwrap_or_else(|| default.to_owned());
            read(line, "rtmodel", Some(&word), "{0.5 2.0 1.0}", seconds)
        };
        let (start, up, down) = (number(0, "0.5")?, number(1, up)?, number(2, down)?);
        let finish = match given.get(3).filter(|word| *word != "-") {
            Some(word) => Some(read(line, "rtmodel", Some(word), "10.0", seconds)?),
            None => None,
        };
        self.turns(line, &edges, (start + up, up, down), finish)
    }

    /// Down at `first`, then alternately up and down.
    fn turns(
        &mut self,
        line: usize,
        edges: &[usize],
        (first, up, down): (Nanos, Nanos, Nanos),
        finish: Option<Nanos>,
    ) -> Result<String> {
        let period = up + down;
        let fix = "write rtmodel Deterministic {0.5 2.0 1.0} $a $b";
        ImportError::unless(period > Nanos::ZERO, line, "a link can't be up and down for no time", fix)?;
        // Number of repetitions of an event with this first time.
        let times =
            |first: Nanos| finish.map(|end| if end < first { 0 } else { end.since(first).0 / period.0 + 1 });
        let (downs, ups) = (times(first), times(first + down));
        for (time, switch, times) in [(first, "down", downs), (first + down, "up", ups)] {
            if times == Some(0) {
                continue;
            }
            let every = if times == Some(1) { None } else { Some((period, times)) };
            let settings = vec![("state", quoted(switch))];
            let change = Change { time, every, edge: 0, directions: [true, true], settings };
            self.note_changes(line, edges, change)?;
        }
        if let Some(time) = finish.filter(|_| ups < downs) {
            let settings = vec![("state", quoted("up"))];
            let change = Change { time, every: None, edge: 0, directions: [true, true], settings };
            self.note_changes(line, edges, change)?;
        }
        Ok(String::new())
    }
}

/// The choice of one direction of the two.
pub(super) fn only((_, forward): Half) -> [bool; 2] {
    [forward, !forward]
}

/// The selected directions of links.
fn each_direction(edges: &[usize], directions: [bool; 2]) -> Vec<Half> {
    let both = |edge: &usize| [(*edge, true), (*edge, false)];
    edges.iter().flat_map(both).filter(|(_, forward)| directions[usize::from(!forward)]).collect()
}

fn in_seconds(time: Nanos) -> String {
    format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000)
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The command that `rest` belongs to.
fn words_of(rest: &[String]) -> Vec<String> {
    std::iter::once("rtmodel".to_owned()).chain(rest.iter().cloned()).collect()
}
