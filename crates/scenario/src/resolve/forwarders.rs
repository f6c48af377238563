//! Section `[[forwarder]]`: programs of routers, verified, compiled and checked against the budget.

use super::{Entry, Resolver};
use crate::file::File;
use crate::file_forwarder::{Forwarder as WrittenEntry, ForwarderKey};
use crate::forwarder_plan::{
    ForwarderFault, ForwarderRequest, PlannedForwarder, WrittenForwarder, WrittenKey,
};
use crate::level_plan::{AboveRequest, Promises, Receiver};
use crate::plan::Plan;
use crate::router_plan::Router;
use crate::written::Written;
use longwire_punt::AttachmentId;
use longwire_router::Forwarders;
use std::ops::Range;
use std::sync::Arc;

impl Resolver<'_, '_> {
    /// The programs of the plan's routers, in the file's order.
    pub(super) fn forwarders(&mut self, file: &File, routers: &[Router]) -> Vec<PlannedForwarder> {
        let table = |router: &Router| {
            let places: Vec<u16> = router.ports.iter().map(|port| port.place).collect();
            Arc::new(Forwarders::none(router.admission.clone(), &places, 0))
        };
        let mut tables: Vec<Option<Arc<Forwarders>>> = vec![None; routers.len()];
        let mut promises: Vec<Promises> =
            routers.iter().map(|router| Promises::new(&router.levels)).collect();
        let mut attachments = vec![AttachmentCounts::default(); routers.len()];
        let mut planned = Vec::new();
        for written in &file.forwarder {
            let entry = Entry { section: "forwarder", name: called(written), n: None };
            let Some(index) = self.router_named(&entry, &written.router) else { continue };
            let router = &routers[index as usize];
            let before = tables[index as usize].take().unwrap_or_else(|| table(router));
            let read = self.forwarder(written, router, &before);
            match read.and_then(|read| promised(read, &mut promises[index as usize])) {
                Ok((mut request, after)) => {
                    request.installation.above = attachments[index as usize].next(request.above.as_ref());
                    planned.push(PlannedForwarder { router: index, request });
                    tables[index as usize] = Some(after);
                }
                Err(ForwarderFault { field, why }) => {
                    self.error(&span_of(written, field), &entry, field, why, "");
                    tables[index as usize] = Some(before);
                }
            }
        }
        planned
    }

    /// Warns where a queue is chosen although there is only one.
    pub(super) fn queues_of_forwarders(&mut self, file: &File, plan: &Plan) {
        for (written, planned) in file.forwarder.iter().zip(&plan.forwarders) {
            if let (Some(queue), Some(odd)) = (written.span("queue"), plan.one_queue(planned.router)) {
                let entry = Entry { section: "forwarder", name: called(written), n: None };
                self.findings.note(queue.clone(), &entry.field("queue"), odd, "");
            }
        }
    }

    fn forwarder(
        &self,
        written: &WrittenEntry,
        router: &Router,
        table: &Forwarders,
    ) -> Result<(ForwarderRequest, Arc<Forwarders>), ForwarderFault> {
        let text = texts(written);
        let request = text.read(router, &text.object(&self.folder)?)?;
        let fault = |why: String| ForwarderFault { field: "program", why };
        let forwarder = request.prepare(&router.admission.prices, 0).map_err(|error| text.refused(&error))?;
        let (_, after) = table.with(forwarder).map_err(|error| fault(error.to_string()))?;
        Ok((request, after))
    }
}

/// Numbers of a router's attachments, from 0 on each level.
#[derive(Debug, Clone, Copy, Default)]
struct AttachmentCounts {
    services: usize,
    processes: usize,
}

impl AttachmentCounts {
    fn next(&mut self, above: Option<&AboveRequest>) -> Option<AttachmentId> {
        let (count, attachment): (_, fn(usize) -> AttachmentId) = match above?.receiver {
            Receiver::Service(_) => (&mut self.services, AttachmentId::slow),
            Receiver::Process => (&mut self.processes, AttachmentId::control),
        };
        *count += 1;
        Some(attachment(*count - 1))
    }
}

/// Admits a forwarder to the level above.
fn promised<T>(
    (request, after): (ForwarderRequest, T),
    promises: &mut Promises,
) -> Result<(ForwarderRequest, T), ForwarderFault> {
    if let Some(above) = &request.above {
        promises.admit(above).map_err(|error| ForwarderFault { field: "packets", why: error.to_string() })?;
    }
    Ok((request, after))
}

fn text<T>(written: Option<&Written<T>>) -> Option<String> {
    written.map(|written| written.text.clone())
}

impl ForwarderKey {
    pub(super) fn text(&self) -> WrittenKey {
        WrittenKey {
            source: text(self.source.as_ref()),
            source_port: text(self.source_port.as_ref()),
            destination: text(self.destination.as_ref()),
            destination_port: text(self.destination_port.as_ref()),
            protocol: text(self.protocol.as_ref()),
        }
    }
}

/// Its texts.
fn texts(entry: &WrittenEntry) -> WrittenForwarder {
    let setting = |name| entry.text(name).map(str::to_owned);
    WrittenForwarder {
        program: text(entry.program.as_ref()).unwrap_or_default(),
        function: text(entry.function.as_ref()),
        constants: entry.constants.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect(),
        maps: entry.maps.iter().map(|(name, entries)| (name.clone(), entries.text.clone())).collect(),
        exits: entry.exits.iter().map(|exit| exit.text.clone()).collect(),
        name: text(entry.name.as_ref()),
        key: entry.key.as_ref().map(ForwarderKey::text),
        state: setting("state"),
        data: text(entry.data.as_ref()),
        port: text(entry.port.as_ref()),
        via: text(entry.via.as_ref()),
        queue: setting("queue"),
        links: entry.links.iter().map(|link| link.text.clone()).collect(),
        level: setting("where"),
        service: text(entry.service.as_ref()),
        packets: setting("packets"),
        cycles: setting("cycles"),
        share: setting("share"),
        mark: setting("mark"),
        within: setting("within"),
        otherwise: setting("otherwise"),
    }
}

/// Its name in errors.
fn called(entry: &WrittenEntry) -> Option<&str> {
    let called = entry.name.as_ref().or(entry.program.as_ref()).or(entry.service.as_ref());
    called.map(|written| &*written.text)
}

/// The place of a key; for an absent one, that of the program or the level.
fn span_of(entry: &WrittenEntry, field: &str) -> Range<usize> {
    fn place<T>(written: Option<&Written<T>>) -> Option<Range<usize>> {
        written.map(|written| written.span.clone())
    }
    let key = entry.key.as_ref();
    let found = match field {
        "function" => place(entry.function.as_ref()),
        "constants" => place(entry.constants.values().next()),
        "maps" => place(entry.maps.values().next()),
        "exits" => place(entry.exits.first()),
        "data" => place(entry.data.as_ref()),
        "port" => place(entry.port.as_ref()),
        "via" => place(entry.via.as_ref()),
        "links" => place(entry.links.first()),
        "name" => place(entry.name.as_ref()),
        "service" => place(entry.service.as_ref()),
        "key.source" => place(key.and_then(|key| key.source.as_ref())),
        "key.source-port" => place(key.and_then(|key| key.source_port.as_ref())),
        "key.destination" => place(key.and_then(|key| key.destination.as_ref())),
        "key.destination-port" => place(key.and_then(|key| key.destination_port.as_ref())),
        "key.protocol" => place(key.and_then(|key| key.protocol.as_ref())),
        _ => entry.row.iter().find(|(key, ..)| *key == field).map(|(.., span)| span.clone()),
    };
    let program = place(entry.program.as_ref()).or_else(|| entry.span("where").cloned());
    found.or(program).unwrap_or_else(|| entry.router.span.clone())
}
