//! Dummynet's pipes as configured by ipfw and dnctl, and the rules that send packets to them: ipfw(8),
//! dnctl(8).
//!
//! A rule from one address to another becomes a link between two hosts with these addresses, selected by
//! `match`. Rules without a pair make one link in each direction between hosts `a` and `b`: `out` rules apply
//! to the direction from `a`.

mod delete;

use super::dummynet::Pipe;
use super::lines::Line;
use super::quantity::whole;
use super::sheet::{Host, Link, Sheet};
use super::sleeps::Clock;
use super::stage::Stage;
use super::words::{Words, named};
use super::{ImportError, Notes, Result, shell};
use delete::Deletion;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Most pairs of addresses that become links.
const MOST_PAIRS: usize = 10_000;
/// Increment of automatic rule numbers (sysctl net.inet.ip.fw.autoinc_step).
const STEP: u64 = 100;
/// The shortest prefix of hosts: addresses with less in common are in separate networks.
const SHORTEST_PREFIX: u32 = 8;

/// The configuration, by number.
#[derive(Default, Clone)]
pub(super) struct Table {
    pub(super) pipes: BTreeMap<u64, Pipe>,
    pub(super) queues: BTreeMap<u64, Pipe>,
    pub(super) scheds: BTreeMap<u64, Pipe>,
    pub(super) rules: Vec<Rule>,
    /// Numbers of rules that do not lead to a pipe.
    pub(super) others: Vec<u64>,
    /// The lines and texts of the rules.
    pub(super) known: BTreeSet<(usize, String)>,
    /// The highest number of a rule.
    pub(super) highest: u64,
}

/// A rule that leads to a pipe, or to a queue of one.
#[derive(Clone)]
pub(super) struct Rule {
    pub(super) line: usize,
    pub(super) text: String,
    /// Its own number, which determines the order of evaluation.
    pub(super) place: u64,
    pub(super) number: u64,
    /// The queue, if it leads to one; `number` is then its pipe's, once known.
    pub(super) queue: Option<u64>,
    pub(super) from: Option<IpAddr>,
    pub(super) to: Option<IpAddr>,
    pub(super) direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    There,
    Back,
    Both,
}

/// The scenario of these commands.
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet> {
    let mut table = Table::default();
    let mut lines = shell::run(text, |words| words.iter().any(|word| is_tool(word)), notes)?;
    let mut clock = Clock::default();
    lines.retain(|line| !clock.passes(line, notes) && !is_idle(line));
    let end = lines.iter().rposition(sets_up).map_or(0, |at| at + 1);
    for line in &lines[..end] {
        table.command(line, notes)?;
    }
    table.clean_up(&lines[end..], notes)?;
    table.join(notes);
    let fix = "write ipfw pipe 1 config bw 1Mbit/s delay 20";
    ImportError::unless(!table.pipes.is_empty(), 0, "no pipe is configured in it", fix)?;
    let mut sheet = Sheet::new("Pipes of dummynet as links.");
    if table.rules.iter().any(|rule| rule.from.is_some() && rule.to.is_some()) {
        table.pairs(&mut sheet, notes)?;
    }
    if sheet.links.is_empty() {
        table.two_hosts(&mut sheet, notes)?;
    }
    Ok(sheet)
}

impl Table {
    pub(super) fn command(&mut self, line: &Line, notes: &mut Notes) -> Result<()> {
        if let Some(deletion) = Deletion::of(line) {
            self.delete(&deletion, line, notes);
            return Ok(());
        }
        let words = behind_tool(line);
        let object = object(&words);
        let config = |word: &str| word.len() > 1 && "config".starts_with(word);
        match &words[..] {
            // ipfw accepts the number before or after the verb.
            [_, number, verb, ..] if object.is_some() && config(verb) => {
                self.configured(line, object, number, notes)
            }
            [_, verb, number, ..] if object.is_some() && config(verb) => {
                self.configured(line, object, number, notes)
            }
            ["add", rest @ ..] => self.rule(line, rest, notes),
            [.., "show" | "list" | "zero"] | ["show" | "list", ..] | [] => Ok(()),
            [_, "show" | "list", ..] if object.is_some() => Ok(()),
            _ => self.of_pf(line, 0, notes),
        }
    }

    /// `pipe|queue|sched N config …`.
    fn configured(
        &mut self,
        line: &Line,
        object: Option<&'static str>,
        number: &str,
        notes: &mut Notes,
    ) -> Result<()> {
        let what = object.unwrap_or("pipe");
        let bad = || {
            let what = format!("\"{number}\" is not a number of a {what}");
            ImportError::new(line.number, what, "number it from 1")
        };
        let number = whole(number).filter(|number| *number > 0).ok_or_else(bad)?;
        let is_verb = |word: &String| word.len() > 1 && "config".starts_with(word.as_str());
        let verb = line.words.iter().position(is_verb).unwrap_or_default();
        let swapped = usize::from(line.words.get(verb + 1).is_some_and(|word| whole(word) == Some(number)));
        let pipe = Pipe::read(&mut Words::new(line.number, &line.words[verb + 1 + swapped..]), notes)?;
        if let Some(before) = self.objects(what).insert(number, pipe.clone()).filter(|before| *before != pipe)
        {
            let why =
                format!("it is taken in place of line {}, whose settings are not carried over", before.line);
            notes.add(line.number, &line.text(), why);
        }
        Ok(())
    }

    /// The objects of a kind: `pipe`, `sched` or `queue`.
    pub(super) fn objects(&mut self, kind: &str) -> &mut BTreeMap<u64, Pipe> {
        match kind {
            "pipe" => &mut self.pipes,
            "sched" => &mut self.scheds,
            _ => &mut self.queues,
        }
    }

    /// `add [NUMBER] pipe|queue N PROTOCOL from A to B [in|out] …`.
    fn rule(&mut self, line: &Line, words: &[&str], notes: &mut Notes) -> Result<()> {
        let own_place = self.place(words.first().and_then(|word| whole(word)).filter(|place| *place > 0));
        let mut at = usize::from(words.first().is_some_and(|word| whole(word).is_some()));
        while let Some(&"set" | &"prob") = words.get(at) {
            let why = "a rule holds for all packets here";
            notes.add(line.number, &words[at..].iter().take(2).copied().collect::<Vec<_>>().join(" "), why);
            at += 2;
        }
        let (Some(kind @ &("pipe" | "queue")), Some(number)) = (words.get(at), words.get(at + 1)) else {
            let why = "of ipfw's rules those to pipes and queues are carried over";
            notes.add(line.number, &line.text(), why);
            self.others.push(own_place);
            return Ok(());
        };
        let what = format!("\"{number}\" is not a number of a {kind}");
        let bad = || ImportError::new(line.number, what, "write ipfw add pipe 1 ip from any to any");
        let number = whole(number).ok_or_else(bad)?;
        let rest = words.get(at + 2..).unwrap_or_default();
        let place = |word: &str| rest.iter().position(|other| *other == word);
        let (from, to) = match (place("from"), place("to")) {
            (Some(from), Some(to)) if from < to => (from, to),
            // `add pipe 1 in`: from any to any.
            (None, None) => (0, 0),
            _ => {
                let fix = "write ipfw add pipe 1 ip from 10.0.0.1 to 10.0.0.2";
                return Err(ImportError::new(line.number, "the rule has no from … to …", fix));
            }
        };
        if let Some(protocol) =
            rest[..from].first().filter(|word| !["ip", "all", "ip4", "ip6", "log"].contains(word))
        {
            let why = "the protocol is ignored here: all packets between these addresses take the link";
            notes.add(line.number, protocol, why);
        }
        let tail = if to == 0 { rest } else { rest.get(to + 2..).unwrap_or_default() };
        let rule = Rule {
            line: line.number,
            text: line.text(),
            place: own_place,
            number,
            queue: (*kind == "queue").then_some(number),
            from: address(line, rest.get(from + 1..to).unwrap_or_default(), notes),
            to: address(line, rest.get(to + 1..to + 2).filter(|_| to > 0).unwrap_or_default(), notes),
            direction: direction(tail),
        };
        let odd: Vec<&str> = tail.iter().copied().filter(|word| !["in", "out"].contains(word)).collect();
        if !odd.is_empty() {
            notes.add(line.number, &odd.join(" "), "ports, interfaces and other conditions are ignored here");
        }
        self.lead(rule);
        Ok(())
    }

    /// Adds a rule, unless the same line already has an identical one.
    pub(super) fn lead(&mut self, rule: Rule) {
        if self.known.insert((rule.line, rule.text.clone())) {
            self.rules.push(rule);
        }
    }

    /// The number of a rule: the given one, or the highest plus 100.
    pub(super) fn place(&mut self, given: Option<u64>) -> u64 {
        let place = given.unwrap_or(self.highest.saturating_add(STEP));
        self.highest = self.highest.max(place);
        place
    }

    /// Connects queues and schedulers to their pipes. A scheduler without a pipe uses the pipe with its own
    /// number, as does a queue's.
    fn join(&mut self, notes: &mut Notes) {
        self.rules.sort_by_key(|rule| rule.place);
        for (number, sched) in &self.scheds {
            match self.pipes.get_mut(&sched.pipe.unwrap_or(*number)) {
                Some(pipe) => pipe.with(sched),
                None => {
                    let why = "there is no pipe for it: configure one";
                    notes.add(sched.line, &format!("sched {number}"), why);
                }
            }
        }
        for rule in &mut self.rules {
            let Some(queue) = rule.queue else {
                if self.pipes.get(&rule.number).is_some_and(Pipe::is_fair) {
                    let why = "into the pipe itself dummynet leads packets first in, first out: a scheduler \
                        is for those of queues (ipfw queue N config sched …; ipfw add queue N). Here the \
                        link has it";
                    notes.add(rule.line, &rule.text, why);
                }
                continue;
            };
            let pipe = self.queues.get(&queue).and_then(|queue| pipe_of(&self.scheds, queue));
            rule.number = pipe.unwrap_or(0);
            let why = "its packets take the link of the queue's pipe, with the queue's length, loss and \
                discipline; here they wait for no other queue";
            notes.add(rule.line, &rule.text, why);
        }
        let queued = |number: u64| self.rules.iter().any(|rule| rule.queue == Some(number));
        note_unused("queue", &self.queues, queued, notes);
    }

    /// The links of a pipe, for packets that come through a queue or directly.
    fn stages(&self, (number, queue): (u64, Option<u64>), notes: &mut Notes) -> Result<Vec<Stage>> {
        let mut pipe = self.pipes[&number].clone();
        if let Some(queue) = queue.and_then(|queue| self.queues.get(&queue)) {
            pipe.behind(queue);
        }
        pipe.stages(number, notes)
    }

    /// One link for each pair of addresses.
    fn pairs(&self, sheet: &mut Sheet, notes: &mut Notes) -> Result<()> {
        let mut pairs: BTreeMap<(IpAddr, IpAddr), u64> = BTreeMap::new();
        let mut order = Vec::new();
        for rule in &self.rules {
            let (Some(from), Some(to)) = (rule.from, rule.to) else {
                let why = "rules for pairs of addresses are carried over where there are such; this one is \
                    for more";
                notes.add(rule.line, &rule.text, why);
                continue;
            };
            if from.is_ipv4() != to.is_ipv4() || from == to || pairs.contains_key(&(from, to)) {
                let why = "no packet reaches it: another rule has its addresses, or none matches";
                notes.add(rule.line, &rule.text, why);
            } else if self.pipes.contains_key(&rule.number) {
                pairs.insert((from, to), rule.number);
                order.push((from, to, rule));
            } else {
                notes.add(rule.line, &rule.text, "its pipe is not configured");
            }
            let (count, fix) = (order.len(), "write links with a count");
            ImportError::if_above(count, MOST_PAIRS, rule.line, "pairs of addresses", fix)?;
        }
        let mut uses: BTreeMap<u64, usize> = BTreeMap::new();
        let mut addresses: Vec<IpAddr> = Vec::new();
        for (from, to, rule) in order {
            let number = rule.number;
            let mut stages = self.stages((number, rule.queue), notes)?;
            if stages.len() > 1 {
                notes.add(rule.line, &format!("pipe {number} delay"), "beside a profile it is left out");
            }
            let used = uses.entry(number).or_default();
            *used += 1;
            if *used == 2 {
                let why =
                    "several rules share the pipe there; each pair of addresses has a link of its own here";
                notes.add(rule.line, &rule.text, why);
            }
            let name = if *used == 1 { format!("pipe{number}") } else { format!("pipe{number}-{used}") };
            let mut link = Link::simplex(name, &host_name(from), &host_name(to), stages.swap_remove(0));
            link.matches.push((from, to));
            sheet.links.push(link);
            addresses.extend([from, to]);
        }
        note_unused("pipe", &self.pipes, |number| uses.contains_key(&number), notes);
        hosts(addresses, sheet, notes);
        Ok(())
    }

    /// One link each way between two hosts.
    fn two_hosts(&self, sheet: &mut Sheet, notes: &mut Notes) -> Result<()> {
        let (mut there, mut back) = (None, None);
        // Lines of the rules for each direction's pipe.
        let mut takers = Vec::new();
        for rule in &self.rules {
            if !self.pipes.contains_key(&rule.number) {
                notes.add(rule.line, &rule.text, "its pipe is not configured");
                continue;
            }
            let direction = match (rule.direction, rule.from, rule.to) {
                (Direction::Both, Some(_), None) => Direction::There,
                (Direction::Both, None, Some(_)) => Direction::Back,
                (direction, ..) => direction,
            };
            if direction == Direction::Both {
                let why = "both directions share the pipe there; here each has a link of its own";
                notes.add(rule.line, &rule.text, why);
            }
            let wanted = [(Direction::There, &mut there), (Direction::Back, &mut back)];
            for (_, place) in
                wanted.into_iter().filter(|(own, _)| direction == Direction::Both || direction == *own)
            {
                if place.is_none() {
                    *place = Some((rule.number, rule.queue));
                    takers.push((rule.line, rule.number));
                } else {
                    notes.add(rule.line, &rule.text, "another rule has the packets of this direction");
                }
            }
        }
        if let [(first, pipe), (second, other)] = takers[..]
            && pipe == other
            && first != second
        {
            let why = "two rules lead both directions into one pipe, and they share its rate and its queue \
                there; here each has a link of its own, and together they send twice as much (a half-duplex \
                [[medium]] is shared)";
            notes.add(second, &format!("pipe {pipe}"), why);
        }
        if there.is_none() && back.is_none() {
            // Queues without rules: pf directs packets to them.
            let queue = |pipe: u64| {
                let own = |(_, queue): &(&u64, &Pipe)| pipe_of(&self.scheds, queue) == Some(pipe);
                self.queues.iter().find(own).map(|(number, _)| *number)
            };
            let mut numbers = self.pipes.keys().map(|pipe| (*pipe, queue(*pipe)));
            (there, back) = (numbers.next(), numbers.next());
            let why = "no rule leads into a pipe: the first is used from a to b, the second back";
            notes.add(0, "rules", why);
        }
        let used = |number: u64| [there, back].iter().flatten().any(|(own, _)| *own == number);
        note_unused("pipe", &self.pipes, used, notes);
        let mut stages = |direction: Option<(u64, Option<u64>)>| -> Result<Vec<Stage>> {
            direction.map_or(Ok(Vec::new()), |direction| self.stages(direction, notes))
        };
        let name = |way: Option<(u64, _)>| way.map_or("pipe".into(), |(number, _)| format!("pipe{number}"));
        let (one, mut other) = (name(there), name(back));
        if one == other {
            other += "-back";
        }
        let (there, back) = (stages(there)?, stages(back)?);
        sheet.host("a");
        sheet.host("b");
        sheet.chain(("a", "b"), (&one, &other), there, back);
        Ok(())
    }
}

/// The number of a queue's pipe: its own, or that of its scheduler.
fn pipe_of(scheds: &BTreeMap<u64, Pipe>, queue: &Pipe) -> Option<u64> {
    let over = |sched: u64| scheds.get(&sched).and_then(|sched| sched.pipe).unwrap_or(sched);
    queue.pipe.or_else(|| queue.sched.map(over))
}

/// Notes objects without packets.
fn note_unused(what: &str, all: &BTreeMap<u64, Pipe>, used: impl Fn(u64) -> bool, notes: &mut Notes) {
    for (number, own) in all.iter().filter(|(number, _)| !used(**number)) {
        notes.add(own.line, &format!("{what} {number}"), "no rule that is carried over leads into it");
    }
}

/// The words of a command after the tool and its flags.
pub(super) fn behind_tool(line: &Line) -> Vec<&str> {
    let at = match line.words.iter().position(|word| is_tool(word)) {
        Some(at) => at + 1,
        None => line.words.iter().take_while(|word| *word == "sudo" || word.starts_with('$')).count(),
    };
    let rest = line.words[at..].iter().map(String::as_str);
    rest.skip_while(|word| word.starts_with('-')).collect()
}

/// The object of a command, unless it is a rule.
pub(super) fn object(words: &[&str]) -> Option<&'static str> {
    words.first().and_then(|word| named(word, &["pipe", "queue", "flowset", "sched"]))
}

/// Whether a command is a shell builtin without effect on pipes. Rules of pf may be in an `echo`.
fn is_idle(line: &Line) -> bool {
    let of_pf = || line.text().contains("dummynet ") || line.text().contains("dnpipe ");
    line.words.first().is_some_and(|word| shell::IDLE.contains(&&**word)) && !of_pf()
}

/// Whether a command may make a pipe or a rule.
fn sets_up(line: &Line) -> bool {
    let is_verb = |word: &str| word.len() > 1 && "config".starts_with(word);
    let mut each = line.words.iter().flat_map(|word| word.split_whitespace());
    each.any(|word| ["add", "dnpipe", "dummynet"].contains(&word) || is_verb(word))
}

fn is_tool(word: &str) -> bool {
    ["ipfw", "dnctl"].iter().any(|tool| word.rsplit('/').next() == Some(tool))
}

/// A single address, or none; anything else except `any` is noted.
pub(super) fn address(line: &Line, words: &[&str], notes: &mut Notes) -> Option<IpAddr> {
    let [word, ports @ ..] = words else { return None };
    if !ports.is_empty() {
        notes.add(line.number, &ports.join(" "), "ports are ignored here");
    }
    let exact = word.strip_suffix("/32").or_else(|| word.strip_suffix("/128")).unwrap_or(word);
    if let Ok(address) = exact.parse() {
        return Some(address);
    }
    if !["any", "me", "me6"].contains(word) {
        notes.add(line.number, word, "only single addresses are distinguished here: it is treated as any");
    }
    None
}

pub(super) fn direction(tail: &[&str]) -> Direction {
    match (tail.contains(&"in"), tail.contains(&"out")) {
        (true, false) => Direction::Back,
        (false, true) => Direction::There,
        _ => Direction::Both,
    }
}

/// The hosts with these addresses, in the smallest networks that contain them all.
fn hosts(mut addresses: Vec<IpAddr>, sheet: &mut Sheet, notes: &mut Notes) {
    addresses.sort_unstable();
    addresses.dedup();
    let bits = |address: &IpAddr| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    };
    for v4 in [true, false] {
        let family: Vec<_> = addresses.iter().filter(|address| address.is_ipv4() == v4).collect();
        let Some(first) = family.first() else { continue };
        let differing = family.iter().fold(0, |all, address| all | (bits(address) ^ bits(first)));
        let most = if v4 { 24 } else { 64 };
        let prefix = differing.leading_zeros().min(most);
        if prefix < SHORTEST_PREFIX {
            let why = "the hosts are in different networks: on real interfaces give them gateways";
            notes.add(0, "addresses", why);
        }
        let prefix = prefix.max(SHORTEST_PREFIX);
        for address in family {
            sheet.hosts.push(Host {
                name: host_name(*address),
                address: format!("{address}/{prefix}"),
                bridge: None,
            });
        }
    }
}

fn host_name(address: IpAddr) -> String {
    format!("host-{address}").trim_end_matches(':').to_owned()
}
