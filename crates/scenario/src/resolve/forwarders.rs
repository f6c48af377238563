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
            let entry = Entry { section: "forwarder", name: written.called(), n: None };
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
                    self.error(&written.span_of(field), &entry, field, why, "");
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
                let entry = Entry { section: "forwarder", name: written.called(), n: None };
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
        let text = written.texts();
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

impl WrittenEntry {
    fn texts(&self) -> WrittenForwarder {
        let setting = |name| self.text(name).map(str::to_owned);
        WrittenForwarder {
            program: text(self.program.as_ref()).unwrap_or_default(),
            function: text(self.function.as_ref()),
            constants: self
                .constants
                .iter()
                .map(|(name, value)| (name.clone(), value.text.clone()))
                .collect(),
            maps: self.maps.iter().map(|(name, entries)| (name.clone(), entries.text.clone())).collect(),
            exits: self.exits.iter().map(|exit| exit.text.clone()).collect(),
            name: text(self.name.as_ref()),
            key: self.key.as_ref().map(ForwarderKey::text),
            state: setting("state"),
            data: text(self.data.as_ref()),
            port: text(self.port.as_ref()),
            via: text(self.via.as_ref()),
            queue: setting("queue"),
            links: self.links.iter().map(|link| link.text.clone()).collect(),
            level: setting("where"),
            service: text(self.service.as_ref()),
            packets: setting("packets"),
            cycles: setting("cycles"),
            share: setting("share"),
            mark: setting("mark"),
            within: setting("within"),
            otherwise: setting("otherwise"),
        }
    }

    /// Its name in errors.
    fn called(&self) -> Option<&str> {
        let called = self.name.as_ref().or(self.program.as_ref()).or(self.service.as_ref());
        called.map(|written| &*written.text)
    }

    /// The place of a key; for an absent one, that of the program or the level.
    fn span_of(&self, field: &str) -> Range<usize> {
        fn place<T>(written: Option<&Written<T>>) -> Option<Range<usize>> {
            written.map(|written| written.span.clone())
        }
        let key = self.key.as_ref();
        let found = match field {
            "function" => place(self.function.as_ref()),
            "constants" => place(self.constants.values().next()),
            "maps" => place(self.maps.values().next()),
            "exits" => place(self.exits.first()),
            "data" => place(self.data.as_ref()),
            "port" => place(self.port.as_ref()),
            "via" => place(self.via.as_ref()),
            "links" => place(self.links.first()),
            "name" => place(self.name.as_ref()),
            "service" => place(self.service.as_ref()),
            "key.source" => place(key.and_then(|key| key.source.as_ref())),
            "key.source-port" => place(key.and_then(|key| key.source_port.as_ref())),
            "key.destination" => place(key.and_then(|key| key.destination.as_ref())),
            "key.destination-port" => place(key.and_then(|key| key.destination_port.as_ref())),
            "key.protocol" => place(key.and_then(|key| key.protocol.as_ref())),
            _ => self.row.iter().find(|(key, ..)| *key == field).map(|(.., span)| span.clone()),
        };
        let program = place(self.program.as_ref()).or_else(|| self.span("where").cloned());
        found.or(program).unwrap_or_else(|| self.router.span.clone())
    }
}
