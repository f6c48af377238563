//! Replaces a program of a router: what is kept, and what is new.

use super::{Answer, RouterAccess, change_table, forwarder_of, refused, unknown, wrong};
use crate::objects::routers::LiveRouters;
use longwire_control::NewForwarder;
use longwire_router::{Fid, Forwarder};
use longwire_scenario::fields_of_programs;
use serde_json::{Value, json};
use std::time::Instant;

impl LiveRouters {
    /// Replaces the program with this number; the new one gets its key and exit.
    pub(super) fn replace(
        &self,
        at: &impl RouterAccess,
        place: usize,
        fid: u32,
        new: &NewForwarder,
    ) -> Answer {
        if new.lease.is_some() {
            let why = "a program that takes another's place has that of the other: leave it out";
            return Err(wrong("lease", why.into()));
        }
        let named = forwarder_of(at, fid)?.installation().name.clone();
        let (mut written, mut request) = self.requested(place, new)?;
        if let Some(field) = fields_of_programs(&written) {
            let why = "a program that takes another's place has that of the other: leave it out, or remove \
                the other and install this one";
            return Err(wrong(field, why.into()));
        }
        if written.name.is_none() {
            request.installation.name = named;
        }
        written.name = None;
        let prices = self.plan.routers[place].admission.prices.clone();
        change_table(at, |table| {
            let before = table.forwarder(Fid(fid)).ok_or_else(|| unknown(fid))?;
            let began = Instant::now();
            let prepared = request.prepare_instead(before, &prices, self.plan.seed);
            let forwarder = prepared.map_err(|error| refused(written.refused(&error)))?;
            let prepared = began.elapsed().as_nanos() as u64;
            let mut answer = kept(before, &forwarder);
            (answer["fid"], answer["prepare_ns"]) = (fid.into(), prepared.into());
            let replaced = table.replacing(Fid(fid), forwarder).ok_or_else(|| unknown(fid))?;
            Ok((answer, replaced.map_err(|error| wrong("program", error.to_string()))?))
        })
    }
}

/// Which maps were kept, are new, or are gone, and whether the state was kept.
fn kept(before: &Forwarder, after: &Forwarder) -> Value {
    let names = |of: &Forwarder, other: &Forwarder, wanted: bool| -> Vec<String> {
        let maps = of.maps().all().iter().filter(|map| other.maps().has(map) == wanted);
        maps.map(|map| map.spec().name.to_string()).collect()
    };
    let state = match (after.state().size(), after.has_state_of(before)) {
        (0, _) => "none",
        (_, true) => "kept",
        (_, false) => "new",
    };
    json!({
        "maps": { "kept": names(after, before, true), "new": names(after, before, false),
            "gone": names(before, after, false) },
        "state": state,
    })
}
