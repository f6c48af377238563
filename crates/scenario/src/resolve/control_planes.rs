//! The key `control-plane` of `[[router]]`: beside each port, one to a namespace.

use super::nodes::Nodes;
use super::{Entry, Resolver};
use crate::file_router;
use crate::plan::{Attachment, ControlEnd, Port};
use crate::router_plan::RouterPort;
use crate::written::{Name, Text, Written};

/// Longest name of an interface (IFNAMSIZ less its terminator).
const LONGEST_INTERFACE: usize = 15;
/// Longest name of a namespace's host.
const LONGEST_NAME: usize = 63;
/// Reserved names of interfaces.
const TAKEN: [&str; 5] = ["lo", "all", "default", ".", ".."];

impl Resolver<'_, '_> {
    /// Adds the ports to a router's control plane, if it is to have one; returns whether. None after an
    /// error.
    pub(super) fn control_plane(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        (router, ports): (u32, &mut [RouterPort]),
        nodes: &mut Nodes,
    ) -> Option<bool> {
        let Some(wanted) = &written.control_plane else { return Some(false) };
        let Text(kind) = self.term(entry, "control-plane", wanted)?;
        if kind != "netns" {
            let what = format!("there is no control plane \"{kind}\"");
            let fix = "write \"netns\": a network namespace, in which BIRD or FRR run";
            return self.refuse(&wanted.span, entry, "control-plane", what, fix);
        }
        if let Some(span) = written.span("scheduler") {
            let what = "a router with a control plane can't share its processors between flows";
            let fix = "remove one of the two: hellos of routing protocols would wait behind flows";
            return self.refuse(span, entry, "scheduler", what, fix);
        }
        let fits = |name: &str, longest: usize| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            name.len() <= longest && name.chars().all(plain) && !TAKEN.contains(&name)
        };
        let Name(name) = self.term(entry, "name", &written.name)?;
        if !fits(&name, LONGEST_NAME) {
            let fix = "the namespace is named after it: use up to 63 letters, digits, \"-\", \"_\" and \".\"";
            let what = "it can't be the name of a namespace";
            return self.refuse(&written.name.span, entry, "name", what, fix);
        }
        for (number, (port, text)) in ports.iter_mut().zip(&written.ports).enumerate() {
            if !fits(&port.name, LONGEST_INTERFACE) {
                let what = format!("\"{}\" can't be the name of an interface", port.name);
                let fix = "the namespace's interfaces are named after ports: use up to 15 letters, digits, \
                    \"-\", \"_\" and \".\"";
                return self.refuse(&text.port.span, entry, "ports.port", what, fix);
            }
            let name = format!("{}:control", port.name);
            let named = Written::new(text.port.span.clone(), name.clone());
            let place = self.place(&Entry { n: None, ..*entry }, &named, nodes)?;
            let beside = Port {
                attachment: Attachment::Control(ControlEnd { router, port: number as u32 }),
                router: Some(router),
                queues: 1,
                ..Port::inner(name.into(), place)
            };
            nodes.put(place, beside, text.port.span.clone(), None);
            port.control = Some(place);
        }
        Some(true)
    }
}
