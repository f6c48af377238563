//! The NESP server of a run: a thread that authenticates messages from ports, and makes the same changes as
//! `longwire ctl set`.

use crate::instance::RunningInstance;
use crate::nesp_counts::NespCounts;
use crate::objects::ObjectChange;
use crate::threads::lock;
use anyhow::Context;
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_control::{Kind, SetError};
use longwire_nesp::{
    self as nesp, Answer, ErrorCode, Item, Items, Job, Key, ListenAddresses, Operation, Outcome, Server,
    Status, resolution_answer, unwrap, wrap,
};
use longwire_port::nesp::{NespEnd, NespFrame, NespInterceptor};
use longwire_rundir::{random, read_key_file};
use longwire_scenario::{Nesp, NespAllow, Plan};
use longwire_units::Nanos;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// Messages of each port that wait for the thread.
const WAITING: usize = 64;
/// The latest time that a request may name, from the start of the run: ten years.
const LATEST: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// A server with its ports, before the run starts.
pub struct NespSetup {
    nesp: Nesp,
    server: Server,
    ends: Vec<NespEnd>,
    messages: Receiver<NespFrame>,
    counted: NespCounts,
}

impl NespSetup {
    /// Wraps the ports that allow NESP, which have one queue each; `ports` are in the plan's order, one for
    /// each queue.
    ///
    /// # Errors
    /// If the key can't be read, or the system has no random numbers.
    pub fn wrap(
        nesp: &Nesp,
        plan: &Plan,
        ports: Vec<Box<dyn Port>>,
    ) -> anyhow::Result<(Self, Vec<Box<dyn Port>>)> {
        let key = read_key_file(&nesp.key_file).map_err(anyhow::Error::msg)?;
        let server = Server::new(Key::read(&key)?, random()?);
        let (sender, messages) = sync_channel(WAITING * nesp.ports.len());
        let mut ends = Vec::new();
        let wanted = ListenAddresses { udp: nesp.udp, udp6: nesp.udp6 };
        let each = plan.queue_places().zip(ports).map(|(place, inner)| {
            if !nesp.ports.contains(&place) {
                return inner;
            }
            let (port, end) = NespInterceptor::wrap(inner, place, wanted, sender.clone());
            ends.push(end);
            Box::new(port)
        });
        let ports = each.collect();
        let intakes = ends.iter().map(|end| Arc::clone(&end.intake)).collect();
        let counted = NespCounts { messages: Arc::default(), intakes };
        Ok((Self { nesp: nesp.clone(), server, ends, messages, counted }, ports))
    }

    /// The server's counters, for the report.
    pub fn counts(&self) -> NespCounts {
        self.counted.clone()
    }

    /// Starts the thread, which ends when the ports are gone. `started` is the start of the run on the
    /// engine's clock.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(self, instance: &Arc<RunningInstance>, started: Nanos) -> anyhow::Result<JoinHandle<()>> {
        let instance = Arc::downgrade(instance);
        let serve = move || self.serve(&instance, started);
        std::thread::Builder::new().name("nesp".into()).spawn(serve).context("the thread of NESP")
    }

    fn serve(mut self, instance: &Weak<RunningInstance>, started: Nanos) {
        let wanted = ListenAddresses { udp: self.nesp.udp, udp6: self.nesp.udp6 };
        while let Ok(arrived) = self.messages.recv() {
            let Some(instance) = instance.upgrade() else { return };
            let reply = match unwrap(arrived.frame(), &wanted) {
                Some((ends, message)) => {
                    let now = monotonic().since(started).0;
                    let reply = match self.server.receive(message, now) {
                        Outcome::Nothing => None,
                        Outcome::Reply(reply) => Some(reply),
                        Outcome::Work(job) => {
                            let answer = carry_out(&instance, started, self.nesp.allow, &job);
                            self.server.finish(&job, &answer)
                        }
                    };
                    reply.map(|reply| wrap(&ends, &reply))
                }
                None => resolution_answer(arrived.frame(), &wanted),
            };
            *lock(&self.counted.messages) = *self.server.counters();
            let end = self.ends.iter_mut().find(|end| end.port == arrived.port);
            // If too many replies wait, the client asks again.
            if let (Some(reply), Some(end)) = (reply, end)
                && end.send(reply)
            {
                instance.remote().ring();
            }
        }
    }
}

/// Why a request is refused.
type Refusal = (ErrorCode, String);

/// Executes a request.
fn carry_out(instance: &RunningInstance, started: Nanos, allow: NespAllow, job: &Job) -> Answer<'static> {
    let done = match job.operation {
        Operation::List => Ok((None, list(instance, &job.items))),
        Operation::Get => get(instance, &job.items).map(|items| (None, items)),
        Operation::Set if allow == NespAllow::Get => Err((
            ErrorCode::NotPermitted,
            "this instance only lets settings be read (nesp.allow = \"get\")".into(),
        )),
        Operation::Set => set(instance, started, (&job.items, job.time)).map(|time| (Some(time), Vec::new())),
    };
    let now = monotonic().since(started).0;
    match done {
        Ok((time, items)) => Answer { status: Status::Done, time: time.unwrap_or(now), items },
        Err((code, why)) => {
            let items = vec![Item::Error(code, printable(why).into())];
            Answer { status: Status::Refused, time: now, items }
        }
    }
}

fn printable(text: String) -> String {
    text.replace(char::is_control, " ")
}

fn list(instance: &RunningInstance, items: &Items<'_>) -> Items<'static> {
    let from = items.iter().find_map(|item| if let Item::Next(from) = item { Some(*from) } else { None });
    let all = nesp::Kind::ALL.into_iter().flat_map(|kind| {
        let names = instance.state().objects.names(instance.remote(), of_instance(kind));
        (0..names.len()).map(move |at| (kind, names[at].clone()))
    });
    let (mut found, mut room) = (Vec::new(), Answer::ROOM - Item::Next(0).size());
    for (place, (kind, name)) in (0u32..).zip(all).skip(from.unwrap_or(0) as usize) {
        let item = Item::Object(kind, name.into());
        let Some(left) = room.checked_sub(item.size()) else {
            found.push(Item::Next(place));
            break;
        };
        room = left;
        found.push(item);
    }
    found
}

/// Reads the requested objects' settings: as many as one answer holds, from the request's *next* item on if
/// it has one.
fn get(instance: &RunningInstance, items: &Items<'_>) -> Result<Items<'static>, Refusal> {
    let (from, mut rest) = match items.split_first() {
        Some((Item::Next(from), behind)) => (Some(*from as usize), behind),
        _ => (None, &items[..]),
    };
    let mut page = Page { from: from.unwrap_or(0), place: 0, items: Vec::new(), room: Answer::ROOM };
    if from.is_some() {
        page.room -= Item::Next(0).size();
    }
    while let Some((first, behind)) = rest.split_first() {
        let Item::Object(kind, name) = first else {
            return Err((ErrorCode::BadRequest, "an object must come first".into()));
        };
        let names = behind.iter().take_while(|item| matches!(item, Item::Name(_))).count();
        let wanted = &behind[..names];
        rest = &behind[names..];
        let (objects, of) = (Arc::clone(&instance.state().objects), of_instance(*kind));
        objects.look(instance.remote(), of, [&**name]);
        let settings = objects.settings(instance.remote(), of, name).map_err(refusal)?;
        for item in wanted {
            if let Item::Name(key) = item
                && !settings.contains_key(&**key)
            {
                let known: Vec<&str> = settings.keys().map(String::as_str).collect();
                let why =
                    format!("{} \"{name}\" has no \"{key}\" now; it has {}", kind.word(), known.join(", "));
                return Err((ErrorCode::BadValue, why));
            }
        }
        let is_wanted =
            |key: &str| wanted.is_empty() || wanted.iter().any(|item| *item == Item::Name(key.into()));
        let settings = settings.into_iter().filter(|(key, _)| is_wanted(key));
        let settings = settings.map(|(key, text)| Item::Setting(key.into(), printable(text).into()));
        if !page.add(first, settings) {
            return match from {
                Some(from) if page.place > from => Ok(page.end()),
                _ => Err((
                    ErrorCode::TooMany,
                    "it does not fit one answer; ask for fewer objects, name the settings, or ask page by \
                     page"
                        .into(),
                )),
            };
        }
    }
    Ok(page.items)
}

/// A page of the requested settings, which are numbered from 0 over all objects.
struct Page {
    from: usize,
    place: usize,
    items: Items<'static>,
    room: usize,
}

impl Page {
    /// Adds an object and its settings after `from`. False at the first without room.
    fn add(&mut self, object: &Item<'_>, settings: impl Iterator<Item = Item<'static>>) -> bool {
        let mut is_there = false;
        for setting in settings {
            if self.place >= self.from {
                let needed = setting.size() + if is_there { 0 } else { object.size() };
                let Some(left) = self.room.checked_sub(needed) else { return false };
                self.room = left;
                if !is_there {
                    self.items.push(object.clone().into_owned());
                    is_there = true;
                }
                self.items.push(setting);
            }
            self.place += 1;
        }
        true
    }

    /// Ends the page with the number of the next page's first setting.
    fn end(mut self) -> Items<'static> {
        self.items.push(Item::Next(u32::try_from(self.place).unwrap_or(u32::MAX)));
        self.items
    }
}

/// The instance's kind for one of NESP.
const fn of_instance(kind: nesp::Kind) -> Kind {
    match kind {
        nesp::Kind::Link => Kind::Link,
        nesp::Kind::Source => Kind::Source,
        nesp::Kind::Medium => Kind::Medium,
        nesp::Kind::Router => Kind::Router,
        nesp::Kind::Forwarder => Kind::Forwarder,
        nesp::Kind::Flow => Kind::Flow,
        nesp::Kind::Port => Kind::Port,
    }
}

/// Makes the changes of a request, at a time or, if that is 0, at once; returns when.
fn set(
    instance: &RunningInstance,
    started: Nanos,
    (items, wanted): (&Items<'_>, u64),
) -> Result<u64, Refusal> {
    let mut changes: Vec<ObjectChange> = Vec::new();
    let mut current = None;
    let bad = |why: &str| Err((ErrorCode::BadRequest, why.to_owned()));
    for item in items {
        match (item, current) {
            (Item::Object(kind, name), _) => {
                let kind = of_instance(*kind);
                let known = changes.iter().position(|change| (change.kind, &*change.name) == (kind, &**name));
                current = Some(known.unwrap_or(changes.len()));
                if known.is_none() {
                    let name = name.clone().into_owned();
                    changes.push(ObjectChange { kind, name, pairs: Vec::new() });
                }
            }
            (Item::Setting(key, text), Some(at)) => {
                changes[at].pairs.push((key.clone().into_owned(), text.clone().into_owned()));
            }
            _ => return bad("settings must follow their object"),
        }
    }
    if changes.is_empty() || changes.iter().any(|change| change.pairs.is_empty()) {
        return bad("an object has no settings");
    }
    let at = (wanted > 0).then(|| started + Nanos(wanted.min(LATEST)));
    if let Some(at) = at {
        let now = monotonic();
        if at <= now || wanted > LATEST {
            let now = now.since(started);
            return Err((
                ErrorCode::BadTime,
                format!("it is {now} now: {} is past, or too far away", Nanos(wanted)),
            ));
        }
    }
    // The state is not held while it is saved.
    let made = instance.state().objects.set(instance.remote(), &changes, at).map_err(refusal)?;
    instance.note_set(&changes, at.map(|at| at.since(started)));
    made.wait().map(|time| time.since(started).0).map_err(refusal)
}

fn refusal(error: SetError) -> Refusal {
    let code = match error {
        SetError::Unknown { .. } | SetError::NoObject { .. } => ErrorCode::UnknownObject,
        SetError::UnknownKey { .. }
        | SetError::Value { .. }
        | SetError::Scenario { .. }
        | SetError::OfFile(_)
        | SetError::Several(_) => ErrorCode::BadValue,
        SetError::Refused(_) | SetError::Unavailable(_) | SetError::NotSaved(_) => ErrorCode::Unavailable,
    };
    (code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real_run::{RealOptions, RealRun};
    use longwire_control::{EventQuery, Instance};

    #[test]
    fn changes_are_logged() {
        let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
        let text = ports.concat() + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n";
        let name = format!("t{}-nesp", std::process::id());
        let plan = longwire_scenario::plan_of(&text);
        let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
        let items =
            vec![Item::Object(nesp::Kind::Link, "l".into()), Item::Setting("delay".into(), "7 ms".into())];
        set(run.instance(), Nanos::ZERO, (&items, 0)).unwrap();
        let log = run.instance().events(EventQuery { after: 0, planned: false }).log;
        assert!(log.iter().any(|entry| entry.what == "l: delay 7 ms"), "{log:?}");
        run.stop();
    }

    /// The pages of 30 settings of one object and one of another, each as the numbers of its settings and of
    /// the next page's first.
    #[test]
    fn long_answers_come_page_by_page_and_leave_nothing_out() {
        let objects = [("a", 0..30u32), ("b", 30..31)];
        let (mut from, mut seen, mut pages) = (0, Vec::new(), 0);
        loop {
            let mut page =
                Page { from, place: 0, items: Vec::new(), room: Answer::ROOM - Item::Next(0).size() };
            let mut whole = true;
            for (name, settings) in &objects {
                let object = Item::Object(nesp::Kind::Router, (*name).into());
                let value = |n| Item::Setting(format!("route.{n}").into(), "x".repeat(100).into());
                whole = whole && page.add(&object, settings.clone().map(value));
            }
            pages += 1;
            let items = if whole { page.items } else { page.end() };
            assert!(items.iter().map(Item::size).sum::<usize>() <= Answer::ROOM);
            assert!(matches!(items[0], Item::Object(..)), "what follows is of an object");
            seen.extend(items.iter().filter_map(|item| match item {
                Item::Setting(key, _) => Some(key.clone().into_owned()),
                _ => None,
            }));
            match items.last() {
                Some(Item::Next(next)) => from = *next as usize,
                _ => break,
            }
        }
        assert!(pages > 2);
        assert_eq!(seen, (0..31).map(|n| format!("route.{n}")).collect::<Vec<_>>());
    }
}
