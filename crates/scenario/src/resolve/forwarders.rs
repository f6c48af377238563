//! Section `[[forwarder]]`: programs of routers, verified, compiled and held against the budget.

use super::{Desk, Entry, some};
use crate::file::File;
use crate::file_forwarder::{Forwarder as WrittenEntry, ForwarderKey};
use crate::finding::suggestion;
use crate::forwarder_plan::{ForwarderFault, PlannedForwarder, WrittenForwarder, WrittenKey};
use crate::router_plan::Router;
use crate::written::{Name, Written};
use longwire_router::Forwarders;
use std::ops::Range;
use std::sync::Arc;

impl Desk<'_, '_> {
    /// The programs of the plan's routers, in the file's order.
    pub(super) fn forwarders(&mut self, file: &File, routers: &[Router]) -> Vec<PlannedForwarder> {
        let table = |router: &Router| {
            let places: Vec<u16> = router.ports.iter().map(|port| port.place).collect();
            Arc::new(Forwarders::none(router.admission.clone(), &places, 0))
        };
        let mut tables: Vec<Option<Arc<Forwarders>>> = vec![None; routers.len()];
        let mut planned = Vec::new();
        for written in &file.forwarder {
            let entry = Entry { section: "forwarder", name: Some(&written.program.text), n: None };
            let Some(index) = self.forwarders_router(&entry, &written.router) else { continue };
            let router = &routers[index as usize];
            let before = tables[index as usize].take().unwrap_or_else(|| table(router));
            match self.forwarder(written, router, &before) {
                Ok((request, after)) => {
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

    fn forwarder(
        &self,
        written: &WrittenEntry,
        router: &Router,
        table: &Forwarders,
    ) -> Result<(crate::ForwarderRequest, Arc<Forwarders>), ForwarderFault> {
        let text = written.text();
        let request = text.read(router, &text.object(&self.folder)?)?;
        let fault = |why: String| ForwarderFault { field: "program", why };
        let forwarder =
            request.prepare(&router.admission.prices, 0).map_err(|error| fault(error.to_string()))?;
        let (_, after) = table.with(forwarder).map_err(|error| fault(error.to_string()))?;
        Ok((request, after))
    }

    fn forwarders_router(&mut self, entry: &Entry<'_>, written: &Written<Name>) -> Option<u32> {
        if let Some(&index) = self.routers.get(written.text.as_str()) {
            return Some(index);
        }
        let mut known: Vec<&str> = self.routers.keys().map(AsRef::as_ref).collect();
        known.sort_unstable();
        let mend = match suggestion(&written.text, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => "declare it as [[router]]".into(),
            None => format!("there are {}", some(&known)),
        };
        let what = format!("there is no router \"{}\"", written.text);
        self.error(&written.span, entry, "router", what, mend);
        None
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

impl WrittenEntry {
    fn text(&self) -> WrittenForwarder {
        WrittenForwarder {
            program: self.program.text.clone(),
            function: text(self.function.as_ref()),
            name: text(self.name.as_ref()),
            key: self.key.as_ref().map(ForwarderKey::text),
            state: text(self.state.as_ref()),
            data: text(self.data.as_ref()),
            port: text(self.port.as_ref()),
            via: text(self.via.as_ref()),
            queue: text(self.queue.as_ref()),
            level: text(self.level.as_ref()),
        }
    }

    /// Where a key of it stands; of what was left out, where the program is named.
    fn span_of(&self, field: &str) -> Range<usize> {
        fn place<T>(written: Option<&Written<T>>) -> Option<Range<usize>> {
            written.map(|written| written.span.clone())
        }
        let key = self.key.as_ref();
        let found = match field {
            "function" => place(self.function.as_ref()),
            "state" => place(self.state.as_ref()),
            "data" => place(self.data.as_ref()),
            "port" => place(self.port.as_ref()),
            "via" => place(self.via.as_ref()),
            "queue" => place(self.queue.as_ref()),
            "where" => place(self.level.as_ref()),
            "key.source" => place(key.and_then(|key| key.source.as_ref())),
            "key.source-port" => place(key.and_then(|key| key.source_port.as_ref())),
            "key.destination" => place(key.and_then(|key| key.destination.as_ref())),
            "key.destination-port" => place(key.and_then(|key| key.destination_port.as_ref())),
            "key.protocol" => place(key.and_then(|key| key.protocol.as_ref())),
            _ => None,
        };
        found.unwrap_or_else(|| self.program.span.clone())
    }
}
