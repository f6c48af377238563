//! Programs of routers: listed, installed, removed and changed.

pub mod change;
pub mod events;
pub(crate) mod fields;
pub mod leases;
pub mod maps;
mod replace;
pub mod rows;

use crate::objects::routers::{LiveRouters, gone};
use change::{ProgramChange, ProgramEvent};
use leases::LENGTHS;
use longwire_assemble::{Levels, LevelsError};
use longwire_block::Node;
use longwire_control::{Entries, NewForwarder, NewState, ProgramRequest, Rings, SetError, TypeQuery};
use longwire_engine::{NodeRef, Remote};
use longwire_program::{Resource, ShippedForwarder};
use longwire_punt::AttachmentId;
use longwire_router::{Fid, Forwarder, Forwarders, Router};
use longwire_scenario::{
    AboveRequest, ForwarderFault, ForwarderRequest, WrittenForwarder, digits, hexadecimal, near_shipped,
};
use longwire_units::{Nanos, counted};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often an installation is retried because the router's programs were changed meanwhile.
const TRIES: usize = 8;
/// When the removal of a program whose lease has expired is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What a request about programs is answered.
type Answer = Result<Value, SetError>;

impl LiveRouters {
    /// Queries or changes a router's programs.
    ///
    /// # Errors
    /// If there is no such router, program or map, or the request is impossible; then nothing has changed.
    pub fn forwarders(&self, remote: &Remote, name: &str, ask: &ProgramRequest) -> Answer {
        let node = self.refs[self.place(name)?];
        self.forwarders_at(&Running { remote, node }, name, ask)
    }

    /// Executes a request about programs at any router.
    ///
    /// # Errors
    /// As [`LiveRouters::forwarders`].
    pub fn forwarders_at(&self, at: &impl RouterAccess, name: &str, ask: &ProgramRequest) -> Answer {
        let place = self.place(name)?;
        match ask {
            ProgramRequest::List => table_of(at).map(|table| self.listed(place, &table)),
            ProgramRequest::Install(new) => {
                let lease = new.lease.as_deref().map(lease_of).transpose()?;
                let installed = self.install(at, place, new)?;
                let fid = installed["fid"].as_u64().and_then(|fid| u32::try_from(fid).ok());
                if let (Some(length), Some(fid)) = (lease, fid) {
                    self.leases.give(self.lease_key(place, fid), length, Instant::now());
                }
                Ok(installed)
            }
            ProgramRequest::Replace(fid, new) => self.replace(at, place, *fid, new),
            ProgramRequest::Renew(fids) => self.renew(place, fids),
            ProgramRequest::Levels => self.attachments(at, place),
            ProgramRequest::Remove(fid) => self.remove(at, place, *fid),
            ProgramRequest::Get(fid, TypeQuery { kind }) => {
                let fid = *fid;
                let forwarder = forwarder_of(at, fid)?;
                let shape = kind.as_deref().map(|kind| maps::named_type(&forwarder, kind)).transpose()?;
                let data = at.ask(move |router| router.data(Fid(fid)))?.ok_or_else(|| unknown(fid))?;
                let mut answer = json!({ "fid": fid, "data": digits(&data), "cost": cost(&forwarder) });
                if let Some(shape) = shape {
                    answer["fields"] = fields::shown(&shape, &data);
                }
                Ok(answer)
            }
            ProgramRequest::Set(fid, state) => set_state(at, *fid, state),
            ProgramRequest::Events(fid, Rings { map, kind }) => {
                events::taken(&*forwarder_of(at, *fid)?, map.as_deref(), kind.as_deref())
            }
            ProgramRequest::Maps(fid) => {
                Ok(json!({ "fid": fid, "maps": maps::all(&*forwarder_of(at, *fid)?) }))
            }
            ProgramRequest::Map(fid, map, Entries { key, fields }) => {
                maps::shown(&*forwarder_of(at, *fid)?, (map, key.as_deref()), *fields)
            }
            ProgramRequest::Write(fid, map, change) => maps::write(&*forwarder_of(at, *fid)?, map, change),
            ProgramRequest::Values(fid, map, keys) => maps::values(&*forwarder_of(at, *fid)?, map, keys),
            ProgramRequest::Clear(fid, map) => maps::clear(&*forwarder_of(at, *fid)?, map),
        }
    }

    fn install(&self, at: &impl RouterAccess, place: usize, new: &NewForwarder) -> Answer {
        let (written, mut request) = self.requested(place, new)?;
        request.installation.above = match &request.above {
            Some(above) => Some(self.give_attachment(at, place, above)?),
            None => None,
        };
        let prices = self.plan.routers[place].admission.prices.clone();
        let installed = change_table(at, |table| {
            let began = Instant::now();
            let prepared = request.prepare(&prices, self.plan.seed);
            let forwarder = prepared.map_err(|error| refused(written.refused(&error)))?;
            let prepared = began.elapsed().as_nanos() as u64;
            let (fid, more) = table.with(forwarder).map_err(|error| wrong("program", error.to_string()))?;
            Ok((json!({ "fid": fid.0, "prepare_ns": prepared }), more))
        });
        if let (Err(_), Some(attachment)) = (&installed, request.installation.above) {
            self.take_attachment(at, place, attachment)?;
        }
        let mut installed = installed?;
        let odd = request.installation.queue.and_then(|_| self.plan.one_queue(place as u32));
        let maps = request.program.maps.iter();
        let remarks = maps.filter_map(|map| Some(format!("map {}: {}", map.name, map.kind.remark()?)));
        let notes: Vec<String> = odd.map(|odd| format!("queue: {odd}")).into_iter().chain(remarks).collect();
        if !notes.is_empty() {
            installed["notes"] = json!(notes);
        }
        Ok(installed)
    }

    /// The requested program, parsed in a scenario's form.
    pub(crate) fn requested(
        &self,
        place: usize,
        NewForwarder { forwarder, object, .. }: &NewForwarder,
    ) -> Result<(WrittenForwarder, ForwarderRequest), SetError> {
        check_object("forwarder", forwarder, r#"{"program": "syn-monitor"}"#)?;
        check_object("key", &forwarder["key"], r#"{"protocol": "tcp"}"#)?;
        let written: WrittenForwarder = serde_json::from_value(forwarder.clone())
            .map_err(|error| wrong("forwarder", error.to_string()))?;
        let object = match object.as_deref() {
            Some(digits) => bytes("object", digits)?.into(),
            // The instance reads no files named in requests.
            None if ShippedForwarder::named(&written.program).is_none() && !written.lets_all_pass() => {
                let name = written.program.escape_debug();
                let near = near_shipped(&written.program);
                return Err(wrong(
                    "program",
                    format!("no program \"{name}\" comes with Longwire: {near}send its object"),
                ));
            }
            None => written.object(Path::new("")).map_err(refused)?,
        };
        let request = written.read(&self.plan.routers[place], &object).map_err(refused)?;
        Ok((written, request))
    }

    /// Removes a program and the attachment for its packets.
    fn remove(&self, at: &impl RouterAccess, place: usize, fid: u32) -> Answer {
        let attachment = forwarder_of(at, fid)?.installation().above;
        let removed = change_table(at, |table| {
            let left = table.without(Fid(fid)).ok_or_else(|| unknown(fid))?;
            Ok((json!({ "fid": fid }), left))
        })?;
        self.leases.end(self.lease_key(place, fid));
        if let Some(attachment) = attachment {
            self.take_attachment(at, place, attachment)?;
        }
        Ok(removed)
    }

    /// Renews the leases of those programs that have one.
    fn renew(&self, place: usize, fids: &[u32]) -> Answer {
        let now = Instant::now();
        let without = fids.iter().filter(|&&fid| !self.leases.renew(self.lease_key(place, fid), now));
        match without.collect::<Vec<_>>().first() {
            None => Ok(json!({ "fids": fids })),
            Some(fid) => Err(wrong("fid", format!("the router has no program {fid} with a lease"))),
        }
    }

    /// Removes programs with expired leases, and returns these changes, and the time until the next one
    /// expires.
    pub fn end_leases(&self, remote: &Remote) -> (Vec<ProgramChange>, Option<Duration>) {
        let (over, next) = self.leases.over(Instant::now());
        let over = over.into_iter().filter_map(|key| Some((self.leaseholder(key)?, key.1)));
        let ended = over.filter_map(|(place, fid)| {
            self.end_lease(&Running { remote, node: self.refs[place] }, place, fid)
        });
        (ended.collect(), next)
    }

    /// Removes a program whose lease has expired. If the router can't do that now, the program has a short
    /// lease again. If it is gone, there is nothing to remove.
    fn end_lease(&self, at: &impl RouterAccess, place: usize, fid: u32) -> Option<ProgramChange> {
        match self.remove(at, place, fid) {
            Ok(_) => {
                let router = self.plan.routers[place].name.to_string();
                return Some(ProgramChange { router, fid, event: ProgramEvent::LeaseEnded });
            }
            Err(SetError::Unavailable(_)) => {
                self.leases.give(self.lease_key(place, fid), RETRY, Instant::now());
            }
            Err(_) => {}
        }
        None
    }

    /// Creates an attachment above the router, for a program.
    fn give_attachment(
        &self,
        at: &impl RouterAccess,
        place: usize,
        above: &AboveRequest,
    ) -> Result<AttachmentId, SetError> {
        let refused = |error: LevelsError| match error {
            LevelsError::DoesNotFit(why) => wrong("packets", why.to_string()),
            other => wrong("where", other.to_string()),
        };
        let asked = above.clone();
        let none = || wrong("where", "the run has no levels above".into());
        let made =
            at.ask(move |router| router.levels_mut().map(|punt| Levels::make_attachment(punt, &asked)))?;
        let attachment = made.ok_or_else(none)?.map_err(refused)?;
        let given = self.levels(place).ok_or_else(none)?.give(attachment, above);
        if let Err(error) = given {
            self.take_attachment(at, place, attachment)?;
            return Err(refused(error));
        }
        Ok(attachment)
    }

    /// Removes an attachment.
    fn take_attachment(
        &self,
        at: &impl RouterAccess,
        place: usize,
        attachment: AttachmentId,
    ) -> Result<(), SetError> {
        // First its promise: once the router has removed it, the next attachment may have its number.
        if let Some(mut levels) = self.levels(place) {
            levels.take_back(attachment);
        }
        at.ask(move |router| router.levels_mut().map(|punt| punt.remove(attachment)))?;
        Ok(())
    }

    /// All programs, and a packet's worst-case cost.
    fn listed(&self, place: usize, table: &Forwarders) -> Value {
        let router = &self.plan.routers[place];
        let now = Instant::now();
        let one = |forwarder: &Arc<Forwarder>| {
            let mut listed = one(router, forwarder);
            if let Some((length, left)) = self.leases.of(self.lease_key(place, forwarder.fid().0), now) {
                listed["lease_ns"] = (length.as_nanos() as u64).into();
                listed["lease_left_ns"] = (left.as_nanos() as u64).into();
            }
            listed
        };
        let amounts = |amount: &dyn Fn(Resource) -> Option<u64>| -> serde_json::Map<String, Value> {
            let each = Resource::ALL.iter().filter_map(|&resource| Some((resource, amount(resource)?)));
            each.map(|(resource, amount)| (resource.name().to_owned(), amount.into())).collect()
        };
        json!({
            "forwarders": table.all().iter().map(one).collect::<Vec<_>>(),
            "need": amounts(&|resource| Some(table.need().amount(resource))),
            "budget": amounts(&|resource| table.admission().budget.limit(resource)),
        })
    }

    /// The attachments above a router.
    fn attachments(&self, at: &impl RouterAccess, place: usize) -> Answer {
        let stats = at.ask(|router| Node::stats(router))?.unwrap_or_default();
        let levels = self.levels(place);
        let socket = levels.as_ref().and_then(|levels| levels.socket());
        let socket = socket.map(|path| path.display().to_string());
        Ok(json!({ "attachments": stats.levels, "socket": socket }))
    }
}

/// Access to a router between two batches of packets.
pub trait RouterAccess {
    /// Runs `act` on the router, and returns its result.
    ///
    /// # Errors
    /// If the router is gone or does not answer.
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Result<T, SetError>;
}

/// A router of a running engine.
struct Running<'r> {
    remote: &'r Remote,
    node: NodeRef,
}

impl RouterAccess for Running<'_> {
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Result<T, SetError> {
        self.remote.at_node(self.node, move |router: &mut Router, _| act(router)).map_err(gone)
    }
}

fn table_of(at: &impl RouterAccess) -> Result<Arc<Forwarders>, SetError> {
    at.ask(|router| router.forwarders())
}

fn forwarder_of(at: &impl RouterAccess, fid: u32) -> Result<Arc<Forwarder>, SetError> {
    table_of(at)?.forwarder(Fid(fid)).cloned().ok_or_else(|| unknown(fid))
}

fn set_state(at: &impl RouterAccess, fid: u32, NewState { data, kind }: &NewState) -> Answer {
    let forwarder = forwarder_of(at, fid)?;
    let data = match kind {
        Some(kind) => fields::read(&maps::named_type(&forwarder, kind)?, data)
            .map_err(|fault| wrong("data", fault.to_string()))?,
        None => bytes("data", data)?,
    };
    let (size, state) = (data.len(), forwarder.state().size());
    if size != state as usize {
        let size = counted(size as u64, "byte");
        return Err(wrong("data", format!("it is {size}, and the state has {state}")));
    }
    let done = at.ask(move |router| router.set_data(Fid(fid), &data))?;
    if done { Ok(json!({ "fid": fid, "bytes": size })) } else { Err(unknown(fid)) }
}

/// Replaces the router's table by the one that `made` returns; returns its result, and how long the router's
/// packets waited, in nanoseconds.
fn change_table(
    at: &impl RouterAccess,
    made: impl Fn(&Forwarders) -> Result<(Value, Arc<Forwarders>), SetError>,
) -> Answer {
    for _ in 0..TRIES {
        let before = table_of(at)?;
        let (mut answer, table) = made(&before)?;
        let made_from = Arc::clone(&before);
        let swapped = at.ask(move |router| {
            let began = Instant::now();
            let swapped = router.replace_forwarders(&made_from, table);
            (swapped, began.elapsed().as_nanos() as u64)
        })?;
        if let (Ok(_), pause) = swapped {
            answer["pause_ns"] = pause.into();
            return Ok(answer);
        }
    }
    Err(SetError::Unavailable("other requests keep changing the router's programs; try again".into()))
}

/// A program of a router, and its counters.
pub(crate) fn one(router: &longwire_scenario::Router, forwarder: &Forwarder) -> Value {
    let (installation, stats) = (forwarder.installation(), forwarder.stats());
    let (port, via) = installation.way.map_or((None, None), |way| router.way_of(way));
    let reasons = stats.reasons.iter().enumerate().map(|(reason, packets)| (reason.to_string(), *packets));
    let reasons =
        reasons.chain([("other".to_owned(), stats.other_reasons)]).filter(|(_, packets)| *packets > 0);
    let reasons: serde_json::Map<_, _> = reasons.map(|(reason, packets)| (reason, packets.into())).collect();
    let constants = forwarder.verified().program().constants.iter();
    let constants: serde_json::Map<_, _> =
        constants.map(|(name, numbers)| (name.to_string(), written(numbers))).collect();
    json!({
        "fid": forwarder.fid().0,
        "name": installation.name,
        "program": installation.program,
        "constants": constants,
        "key": installation.key.to_string(),
        "state": forwarder.state().size(),
        "port": port,
        "via": via.map(|via| via.to_string()),
        "queue": installation.queue,
        "exits": forwarder.exits().map(|(_, exit)| &*exit.program().name).collect::<Vec<_>>(),
        "links": installation.links.iter().map(|link| &*link.name).collect::<Vec<_>>(),
        "compiled": forwarder.is_compiled(),
        "packets": stats.packets,
        "passed": stats.passed,
        "transmitted": stats.transmitted,
        "redirected": stats.redirected,
        "dropped": stats.dropped,
        "aborted": stats.aborted,
        "marked": stats.marked,
        "where": match installation.above {
            None => "data-path",
            Some(attachment) if attachment.is_control() => "control",
            Some(_) => "slow-path",
        },
        "reasons": reasons,
        "cost": cost(forwarder),
    })
}

/// A program's measured time per packet and its worst case, in nanoseconds; nothing is measured in virtual
/// time.
fn cost(forwarder: &Forwarder) -> Value {
    let ns = |picoseconds: u64| picoseconds.saturating_add(500) / 1000;
    let measured = forwarder.measured();
    json!({
        "worst_case_ns": ns(forwarder.demand().amount(Resource::Time)),
        "samples": measured.map_or(0, |cost| cost.samples),
        "mean_ns": measured.map(|cost| ns(cost.mean)),
        "p99_ns": measured.map(|cost| ns(cost.p99)),
        "most_ns": measured.map(|cost| ns(cost.most)),
    })
}

pub(crate) fn refused(fault: ForwarderFault) -> SetError {
    wrong(fault.field, fault.why)
}

/// The values of a constant: one, or a list. They have at most 64 bits, signed or unsigned.
fn written(numbers: &[i128]) -> Value {
    let number = |&number: &i128| i64::try_from(number).map_or_else(|_| (number as u64).into(), Value::from);
    match numbers {
        [only] => number(only),
        several => several.iter().map(number).collect(),
    }
}

fn lease_of(text: &str) -> Result<Duration, SetError> {
    let length: Nanos = text.parse().map_err(|error| wrong("lease", format!("{error}")))?;
    let (least, most) = (Nanos::from_secs(*LENGTHS.start()), Nanos::from_secs(*LENGTHS.end()));
    if !(least..=most).contains(&length) {
        return Err(wrong("lease", format!("{length} is not a time from {least} to {most}")));
    }
    Ok(Duration::from_nanos(length.0))
}

pub(crate) fn unknown(fid: u32) -> SetError {
    wrong("fid", format!("the router has no program {fid}"))
}

pub(crate) fn wrong(key: &str, reason: String) -> SetError {
    SetError::Value { key: key.into(), reason }
}

/// Refuses a list, which would be read as the fields of an object in the order of their declaration.
fn check_object(key: &str, value: &Value, example: &str) -> Result<(), SetError> {
    if value.is_array() { Err(wrong(key, format!("write an object, such as {example}"))) } else { Ok(()) }
}

/// Bytes from hexadecimal digits.
pub(crate) fn bytes(key: &str, text: &str) -> Result<Vec<u8>, SetError> {
    hexadecimal(text).map_err(|fault| wrong(key, fault.why))
}

#[cfg(test)]
mod tests;
