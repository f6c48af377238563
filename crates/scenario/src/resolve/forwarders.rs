//! Section `[[forwarder]]`: programs of routers, verified, compiled and checked against the budget.

use super::{Entry, Resolver};
use crate::file::File;
use crate::file_router::{Forwarder as WrittenEntry, ForwarderKey};
use crate::forwarder_plan::{
    ForwarderFault, ForwarderRequest, PlannedForwarder, WrittenForwarder, WrittenKey, fault,
};
use crate::level_plan::Receiver;
use crate::plan::Plan;
use crate::router_plan::Router;
use crate::written::Written;
use longwire_punt::{Admission, AttachmentId};
use longwire_router::Forwarders;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

impl Resolver<'_, '_> {
    /// The programs of the plan's routers, in the file's order.
    pub(super) fn forwarders(&mut self, file: &File, routers: &[Router]) -> Vec<PlannedForwarder> {
        let mut installed: HashMap<u32, Installed> = HashMap::new();
        let mut planned = Vec::new();
        for written in &file.forwarder {
            let entry = Entry { section: "forwarder", name: called(written), n: None };
            let Some(index) = self.router_named(&entry, &written.router) else { continue };
            let router = &routers[index as usize];
            let own = installed.entry(index).or_insert_with(|| Installed::none(router));
            match own.install(written, router, &self.folder) {
                Ok(request) => planned.push(PlannedForwarder { router: index, request }),
                Err(ForwarderFault { field, why }) => {
                    self.error(&span_of(written, field), &entry, field, why, "");
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
}

/// What is installed on a router so far.
struct Installed {
    table: Arc<Forwarders>,
    /// Of the slow path, and of the control level: the guarantees given, and the number of attachments.
    levels: [(Admission, usize); 2],
}

impl Installed {
    fn none(router: &Router) -> Self {
        let places: Vec<u16> = router.ports.iter().map(|port| port.place).collect();
        let table = Arc::new(Forwarders::none(router.admission.clone(), &places, 0));
        let levels = [router.levels.slow, router.levels.control];
        Self { table, levels: levels.map(|capacity| (Admission::new(capacity), 0)) }
    }

    /// Verifies and compiles a program, and admits it to the level above.
    fn install(
        &mut self,
        written: &WrittenEntry,
        router: &Router,
        folder: &Path,
    ) -> Result<ForwarderRequest, ForwarderFault> {
        let text = texts(written);
        let mut request = text.read(router, &text.object(folder)?)?;
        let forwarder = request.prepare(&router.admission.prices, 0).map_err(|error| text.refused(&error))?;
        let (_, after) = self.table.with(forwarder).map_err(|error| fault("program", error.to_string()))?;
        if let Some(above) = &request.above {
            let (level, attachment): (_, fn(usize) -> AttachmentId) = match above.receiver {
                Receiver::Service(_) => (0, AttachmentId::slow),
                Receiver::Process => (1, AttachmentId::control),
            };
            let (promised, count) = &mut self.levels[level];
            let admitted = promised.admit(&above.name, above.request);
            admitted.map_err(|error| fault("packets", error.to_string()))?;
            request.installation.above = Some(attachment(*count));
            *count += 1;
        }
        self.table = after;
        Ok(request)
    }
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
